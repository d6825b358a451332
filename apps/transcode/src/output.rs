//! Where a made picture goes. Small ones go as a whole, with their length; larger ones begin to go while the encoder is at work.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::{Either, Full};
use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::failure::Failure;
use crate::request::Format;
use crate::turns::Turn;

/// What fits in here goes as a whole.
const WHOLE: usize = 256 << 10;

/// How many parts of a picture may wait for a slow client before the encoder does.
const PARTS: usize = 16;

/// The body of an answer.
pub(crate) type Reply = Either<Full<Bytes>, Parts>;

/// A body that is there.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> Reply {
    Either::Left(Full::new(bytes.into()))
}

/// The encoder failed when half of the answer was gone: the connection is cut.
#[derive(Debug, thiserror::Error)]
#[error("the picture could not be finished")]
pub(crate) struct Broken;

/// A body that comes in parts.
pub(crate) struct Parts {
    parts: mpsc::Receiver<Result<Bytes, Broken>>,
    /// How many bytes there will be, if that is known.
    left: Option<u64>,
}

impl Parts {
    /// The body, and where its parts are to be put.
    pub fn new(length: Option<u64>) -> (mpsc::Sender<Result<Bytes, Broken>>, Reply) {
        let (sender, parts) = mpsc::channel(PARTS);
        let parts = Parts { parts, left: length };
        (sender, Either::Right(parts))
    }
}

impl Body for Parts {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let next = std::task::ready!(self.parts.poll_recv(context));
        Poll::Ready(next.map(|part| {
            let bytes = part?;
            if let Some(left) = &mut self.left {
                *left = left.saturating_sub(bytes.len() as u64);
            }
            Ok(Frame::data(bytes))
        }))
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// A picture that is made, or has begun to be.
pub(crate) struct Made {
    pub format: Format,
    pub body: Reply,
    /// For the header `Server-Timing`: what each stage took that is at its end.
    pub timing: String,
}

/// Who waits for the picture.
pub(crate) type Waiting = oneshot::Sender<Result<Made, Failure>>;

/// Takes what an encoder makes. For threads that may wait.
pub(crate) struct Output {
    format: Format,
    gathered: Vec<u8>,
    waiting: Option<Waiting>,
    parts: Option<mpsc::Sender<Result<Bytes, Broken>>>,
    /// How long a client may take for [`PARTS`] parts.
    patience: Duration,
    timing: String,
    runtime: Handle,
    /// How many bytes were made.
    pub given: u64,
}

impl Output {
    /// In the runtime that sends it.
    pub fn new(waiting: Waiting, patience: Duration, runtime: Handle) -> Self {
        Output {
            format: Format::Jpeg,
            gathered: Vec::new(),
            waiting: Some(waiting),
            parts: None,
            patience,
            timing: String::new(),
            runtime,
            given: 0,
        }
    }

    /// What comes is in this format; `timing` is told with it.
    pub fn begin(&mut self, format: Format, timing: &str) {
        self.format = format;
        timing.clone_into(&mut self.timing);
    }

    /// Takes a part. An error: nobody wants more.
    pub fn write(&mut self, bytes: Vec<u8>, turn: &Turn) -> Result<(), Broken> {
        self.given += bytes.len() as u64;
        if self.parts.is_none() {
            if self.gathered.len() + bytes.len() <= WHOLE {
                self.gathered.extend_from_slice(&bytes);
                return Ok(());
            }
            let (sender, body) = Parts::new(None);
            self.answer(body)?;
            let gathered = std::mem::take(&mut self.gathered);
            self.parts = Some(sender);
            self.send(gathered, turn)?;
        }
        self.send(bytes, turn)
    }

    fn answer(&mut self, body: Reply) -> Result<(), Broken> {
        let made = Made {
            format: self.format,
            body,
            timing: std::mem::take(&mut self.timing),
        };
        let waiting = self.waiting.take().ok_or(Broken)?;
        waiting.send(Ok(made)).map_err(|_| Broken)
    }

    fn send(&mut self, bytes: Vec<u8>, turn: &Turn) -> Result<(), Broken> {
        let parts = self.parts.as_ref().ok_or(Broken)?;
        match parts.try_send(Ok(bytes.into())) {
            Ok(()) => Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(Broken),
            Err(mpsc::error::TrySendError::Full(part)) => turn.without(|| {
                let sent = tokio::time::timeout(self.patience, parts.send(part));
                // Too slow, or gone.
                self.runtime
                    .block_on(sent)
                    .map_err(|_| Broken)?
                    .map_err(|_| Broken)
            }),
        }
    }

    /// All is there.
    pub fn finish(mut self, timing: &str) {
        if self.parts.is_none() {
            timing.clone_into(&mut self.timing);
            let body = whole(std::mem::take(&mut self.gathered));
            // Who has gone does not want it.
            let _ = self.answer(body);
        }
    }

    /// There will be no picture, or not all of it.
    pub fn fail(mut self, failure: Failure) {
        if let Some(waiting) = self.waiting.take() {
            let _ = waiting.send(Err(failure));
        } else if let Some(parts) = self.parts.take() {
            // If there is no room the client is slow, and the missing end tells it the same.
            let _ = parts.try_send(Err(Broken));
        }
    }
}
