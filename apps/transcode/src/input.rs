//! Where a picture's bytes come from: a file, or the body of a request, as it arrives.

use std::fs::File;
use std::io::Read;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body, Bytes, Incoming};
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::turns::Turn;

/// A picture that comes. For threads that may wait.
pub(crate) struct Input {
    from: From,
    /// Bytes that may still come.
    left: u64,
    limit: u64,
    /// How many have come.
    pub taken: u64,
}

enum From {
    File(File),
    Body(Coming),
}

struct Coming {
    body: Incoming,
    /// What has come and did not fit.
    rest: Bytes,
    /// When all has to be there.
    until: Instant,
    runtime: Handle,
}

impl Input {
    pub fn file(file: File, limit: u64) -> Self {
        Self::new(From::File(file), limit)
    }

    /// The body has to come within `time` from now. To be called in the runtime that receives it.
    pub fn body(body: Incoming, limit: u64, time: Duration) -> Self {
        let coming = Coming {
            body,
            rest: Bytes::new(),
            until: Instant::now() + time,
            runtime: Handle::current(),
        };
        Self::new(From::Body(coming), limit)
    }

    fn new(from: From, limit: u64) -> Self {
        Input {
            from,
            left: limit,
            limit,
            taken: 0,
        }
    }

    /// The next bytes, at most `room`; none at the end.
    pub fn read(&mut self, room: usize, turn: &Turn) -> Result<Bytes, Failure> {
        let bytes = match &mut self.from {
            From::File(file) => {
                let mut bytes = vec![0; room];
                let n = file.read(&mut bytes).map_err(|e| Failure::internal(&e))?;
                bytes.truncate(n);
                Bytes::from(bytes)
            }
            From::Body(coming) => coming.read(room, turn)?,
        };
        self.taken += bytes.len() as u64;
        self.left = self
            .left
            .checked_sub(bytes.len() as u64)
            .ok_or_else(|| too_large(self.limit))?;
        Ok(bytes)
    }
}

/// The answer for pictures of more bytes than may come.
pub(crate) fn too_large(limit: u64) -> Failure {
    Failure::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("the picture has more than {limit} bytes (--size-limit)"),
    )
}

impl Coming {
    fn read(&mut self, room: usize, turn: &Turn) -> Result<Bytes, Failure> {
        while self.rest.is_empty() {
            // What is there already costs no turn.
            let polled = Pin::new(&mut self.body).poll_frame(&mut Context::from_waker(Waker::noop()));
            let frame = match polled {
                Poll::Ready(frame) => frame,
                Poll::Pending => turn.without(|| {
                    let next = tokio::time::timeout_at(self.until, self.body.frame());
                    self.runtime.block_on(next).map_err(|_| {
                        Failure::new(
                            StatusCode::REQUEST_TIMEOUT,
                            "the picture came too slowly (--input-limit)",
                        )
                    })
                })?,
            };
            match frame {
                None => return Ok(Bytes::new()),
                Some(Ok(frame)) => self.rest = frame.into_data().unwrap_or_default(),
                Some(Err(e)) => {
                    return Err(Failure::new(
                        StatusCode::BAD_REQUEST,
                        format!("the request broke off: {e}"),
                    ));
                }
            }
            if Instant::now() > self.until {
                return Err(Failure::new(
                    StatusCode::REQUEST_TIMEOUT,
                    "the picture came too slowly (--input-limit)",
                ));
            }
        }
        Ok(self.rest.split_to(self.rest.len().min(room)))
    }
}
