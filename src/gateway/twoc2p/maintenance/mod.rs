//! 2C2P's maintenance API: what can be done with a payment after it was made. XML, encrypted and signed with RSA keys.
