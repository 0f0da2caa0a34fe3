//! Keeps card numbers and secrets out of everything that is printed or stored.

/// The longest text that is taken over from an answer.
const LONGEST: usize = 256;

/// A few words of a body that is not in the expected form, for a person to recognise where it came from: the title or
/// first heading of a page, the beginning of a text. At most 256 bytes, one line, scrubbed.
///
/// It ends before the first sign that something is quoted. Boxes between us and a gateway like to give the request
/// back, and nothing in it could be told from their own words.
#[must_use]
pub fn excerpt(body: &[u8]) -> String {
    // Scrubbed before it is cut, and with room beyond the cut, so that no number escapes by being halved.
    let head = String::from_utf8_lossy(&body[..body.len().min(LONGEST * 4)]);
    let text = head.trim();
    let words = if text.starts_with('<') {
        element(text, "<title").or(element(text, "<h1")).unwrap_or_default()
    } else {
        text
    };
    let quoted = words.find(['{', '[', '"', ':', '=', '&', '<']).unwrap_or(words.len());
    scrub(words[..quoted].trim())
}

/// What stands in the first element that is opened like this.
fn element<'a>(page: &'a str, opening: &str) -> Option<&'a str> {
    let begins = page.to_ascii_lowercase().find(opening)?;
    let (_, content) = page[begins..].split_once('>')?;
    content.split('<').next()
}

/// A text from outside, made fit to be printed and stored: card numbers and things that look like keys or tokens are
/// masked, control characters become spaces, and it is cut at 256 bytes.
#[must_use]
pub fn scrub(text: &str) -> String {
    if is_harmless(text) {
        return text.to_owned();
    }
    let one_line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut scrubbed = mask_card_numbers(&mask_tokens(&mask_secrets(&one_line)));
    if scrubbed.len() > LONGEST {
        let cut = (0..=LONGEST)
            .rev()
            .find(|at| scrubbed.is_char_boundary(*at))
            .unwrap_or(0);
        scrubbed.truncate(cut);
        scrubbed.push('…');
    }
    scrubbed
}

/// Too short for a card number or a token, and without the signs of a key: most codes and words that gateways send.
fn is_harmless(text: &str) -> bool {
    text.len() < 13 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b' ') && !text.contains("eyJ")
}

/// Runs of 13 to 19 digits, with single spaces or dashes between them, become `***`.
fn mask_card_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut run = String::new();
    let mut digits = 0;
    let flush = |out: &mut String, run: &mut String, digits: &mut usize| {
        if *digits >= 13 {
            out.push_str("***");
            let kept = run.trim_end_matches([' ', '-']).len();
            out.push_str(&run[kept..]);
        } else {
            out.push_str(run);
        }
        run.clear();
        *digits = 0;
    };
    for character in text.chars() {
        if character.is_ascii_digit() {
            run.push(character);
            digits += 1;
        } else if digits > 0 && matches!(character, ' ' | '-') && run.ends_with(|c: char| c.is_ascii_digit()) {
            run.push(character);
        } else {
            flush(&mut out, &mut run, &mut digits);
            out.push(character);
        }
    }
    flush(&mut out, &mut run, &mut digits);
    out
}

/// The prefixes of Stripe's keys and secrets (docs.stripe.com/keys), what stands before the secret part of a client
/// secret, and how every JSON web token begins.
const SECRET_PREFIXES: [&str; 6] = ["sk_", "rk_", "pk_", "whsec_", "_secret_", "eyJ"];

fn mask_secrets(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    'text: while let Some(first) = rest.chars().next() {
        for prefix in SECRET_PREFIXES {
            if let Some(tail) = rest.strip_prefix(prefix) {
                let secret = tail
                    .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')))
                    .unwrap_or(tail.len());
                if secret >= 4 {
                    out.push_str(prefix);
                    out.push_str("***");
                    rest = &tail[secret..];
                    continue 'text;
                }
            }
        }
        out.push(first);
        rest = &rest[first.len_utf8()..];
    }
    out
}

/// Longer than any id or key of an operation; tokens that pay are longer still.
const TOKEN: usize = 40;

/// Runs of 40 and more characters of base64, with letters and digits among them, become `***`.
fn mask_tokens(text: &str) -> String {
    let in_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '_' | '-' | '%');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let run = rest.find(|c| !in_token(c)).unwrap_or(rest.len());
        let (token, after) = rest.split_at(run);
        let opaque = token.contains(|c: char| c.is_ascii_digit()) && token.contains(|c: char| c.is_ascii_alphabetic());
        out.push_str(if token.len() >= TOKEN && opaque { "***" } else { token });
        let other = after.find(in_token).unwrap_or(after.len());
        out.push_str(&after[..other]);
        rest = &after[other..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn masks_card_numbers_and_keys_and_keeps_the_rest() {
        for (text, expected) in [
            ("card 4242 4242 4242 4242 cvc 123", "card *** cvc 123"),
            ("4111111111111111", "***"),
            ("4111-1111-1111-1111!", "***!"),
            ("order 1234567890 of 12", "order 1234567890 of 12"),
            ("bad key sk_test_TESTONLYcases0001.", "bad key sk_***"),
            ("pi_1_secret_TESTONLY here", "pi_1_secret_*** here"),
            ("a\r\nb", "a  b"),
            (
                "token kSAops9Zwhos8hSTSeLTUcCrwcnrndJUZanGJy3fBEsXCiYmyn+KKSegjUjERKCyWPg= is bad",
                "token *** is bad",
            ),
            (
                "no such pi_3MtwBwLkdIwHu7ix28a3tqPa for 402f04607e0a5d329f51fdc342460021",
                "no such pi_3MtwBwLkdIwHu7ix28a3tqPa for 402f04607e0a5d329f51fdc342460021",
            ),
        ] {
            assert_eq!(scrub(text), expected);
        }
    }

    #[test]
    fn an_excerpt_names_the_sender_and_quotes_nothing() {
        for (body, expected) in [
            (
                "<html><head><title>502 Bad Gateway</title></head><body>x</body></html>",
                "502 Bad Gateway",
            ),
            ("<!DOCTYPE html><HTML><TITLE lang='en'>Blocked</TITLE>", "Blocked"),
            (
                "<html><body><h1>Sorry</h1> <p>Authorization: Bearer x</p></body></html>",
                "Sorry",
            ),
            ("<html><body>amount=2000</body></html>", ""),
            ("<title>no end", "no end"),
            ("<title", ""),
            ("\n upstream connect error\n", "upstream connect error"),
            ("Bad request. Authorization: Bearer x", "Bad request. Authorization"),
            ("amount=2000&currency=thb", "amount"),
            (r#"{"customerToken":"x"}"#, ""),
            (r#"no route for "customerToken""#, "no route for"),
            ("card 4242 4242 4242 4242", "card ***"),
            ("", ""),
        ] {
            assert_eq!(excerpt(body.as_bytes()), expected, "{body}");
        }
    }

    proptest! {
        #[test]
        fn never_panics_and_is_always_short(text in ".{0,2000}") {
            prop_assert!(scrub(&text).len() <= LONGEST + 3);
            prop_assert!(excerpt(text.as_bytes()).len() <= LONGEST + 3);
            let page = format!("<{text}");
            prop_assert!(excerpt(page.as_bytes()).len() <= LONGEST + 3);
        }

        #[test]
        fn no_card_number_survives(before in "[a-z ]{0,300}", number in "[0-9]{13,19}", after in "[a-z ]{0,300}") {
            let text = format!("{before}{number}{after}");
            prop_assert!(!scrub(&text).contains(&number));
            prop_assert!(!excerpt(text.as_bytes()).contains(&number[..13]));
        }
    }
}
