//! Numbers, bytes and text.

/// Longest text that travels.
const TEXT: usize = 2000;

/// Bytes on their way out.
#[derive(Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn number(&mut self, n: u64) -> &mut Self {
        self.0.extend_from_slice(&n.to_le_bytes());
        self
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// Text, cut to what travels.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        let mut end = text.len().min(TEXT);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.bytes(&text.as_bytes()[..end])
    }

    pub(crate) fn maybe(&mut self, text: Option<&str>) -> &mut Self {
        self.number(u64::from(text.is_some())).text(text.unwrap_or(""))
    }
}

/// Bytes on their way in. What is missing is 0, or empty.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn number(&mut self) -> u64 {
        match self.0.split_first_chunk() {
            Some((first, rest)) => {
                self.0 = rest;
                u64::from_le_bytes(*first)
            }
            None => 0,
        }
    }

    pub(crate) fn bytes(&mut self) -> &'a [u8] {
        let len = usize::try_from(self.number())
            .unwrap_or(usize::MAX)
            .min(self.0.len());
        let (bytes, rest) = self.0.split_at(len);
        self.0 = rest;
        bytes
    }

    pub(crate) fn text(&mut self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    pub(crate) fn maybe(&mut self) -> Option<String> {
        let there = self.number() != 0;
        let text = self.text();
        there.then_some(text)
    }
}
