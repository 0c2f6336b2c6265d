//! `ringfenced`: applies the layout, puts present and future processes into their groups, keeps the division, and
//! answers over a socket. It decides by `classify` and `plan`, and changes by `apply`.
