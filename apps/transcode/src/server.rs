//! Requests and answers.

use std::convert::Infallible;
use std::io;
use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http_body_util::{BodyExt, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use ringfence_functions::FunctionError;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{Semaphore, oneshot, watch};

use crate::Options;
use crate::clients::{Client, Clients, Put};
use crate::codec::{Codec, CodecError, Limits};
use crate::failure::Failure;
use crate::input::{Input, too_large};
use crate::metrics::{self, Metrics};
use crate::output::{Broken, Made, Output, Parts, Reply, whole};
use crate::request::{Format, Wanted};
use crate::store::{Store, Stored};
use crate::turns::Turns;
use crate::work::Workshop;

/// The page for a browser.
const PAGE: &str = include_str!("../page/index.html");

/// A file is read in such pieces when it goes as it is.
const PIECE: usize = 256 << 10;

/// How long connections may take to finish when the server stops.
const STOPPING: Duration = Duration::from_secs(5);

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No address to listen at, or no threads.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The module with decoders and encoders cannot be used.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The clients' runtimes cannot be made.
    #[error("a client's runtime: {0}")]
    Runtime(#[from] FunctionError),
    /// The clients' file cannot be used.
    #[error("{0}")]
    Clients(String),
}

/// A server that runs. It stops when it is dropped.
pub struct Server {
    runtime: Option<Runtime>,
    address: SocketAddr,
    stop: watch::Sender<bool>,
    accepting: Option<tokio::task::JoinHandle<()>>,
}

/// What all connections share.
struct Shared {
    workshop: Arc<Workshop>,
    clients: Clients,
    store: Store,
    /// One for each picture that may be on its way.
    places: Arc<Semaphore>,
    limits: RequestLimits,
    max_age: Duration,
    /// What the server itself and its module come to.
    version: [u8; 32],
}

struct RequestLimits {
    requests: usize,
    size: u64,
    text: u64,
    time: Duration,
}

impl Server {
    /// Starts a server; from now on it answers.
    ///
    /// # Errors
    /// [`StartError`] tells what is missing.
    pub fn start(options: &Options) -> Result<Self, StartError> {
        let limits = Limits {
            time: options.time_limit,
            memory: options.memory_limit,
            pixels: options.pixels_limit,
        };
        let (processors, requests) = (options.processors(), usize::from(options.requests));
        let codec = Codec::new(&options.module, options.backend, &limits, processors, requests)?;
        let store = Store::new(options.pictures.clone()).map_err(|source| StartError::System {
            what: format!(
                "--pictures {}",
                options.pictures.clone().unwrap_or_default().display()
            ),
            source,
        })?;
        let keys = options.all_clients().map_err(StartError::Clients)?;
        let clients = Clients::new(&keys, &limits, options.text_limit, options.functions_limit)?;
        let version = Sha256::new()
            .chain_update(env!("CARGO_PKG_VERSION"))
            .chain_update(codec.version)
            .finalize()
            .into();
        let shared = Arc::new(Shared {
            workshop: Arc::new(Workshop {
                codec,
                turns: Turns::new(processors),
                metrics: Metrics::new(),
            }),
            clients,
            store,
            places: Arc::new(Semaphore::new(requests)),
            limits: RequestLimits {
                requests,
                size: options.size_limit,
                text: options.text_limit,
                time: options.input_limit,
            },
            max_age: options.max_age,
            version,
        });
        let system = |what: &str| {
            let what = what.to_owned();
            move |source| StartError::System { what, source }
        };
        let runtime = Builder::new_multi_thread()
            .worker_threads(processors.min(4))
            // One for each picture that is on its way, and some that read files.
            .max_blocking_threads(requests + 2)
            .thread_keep_alive(Duration::from_secs(60))
            .enable_all()
            .build()
            .map_err(system("threads"))?;
        let bound = runtime.block_on(TcpListener::bind(options.listen));
        let listener = bound.map_err(system(&format!("--listen {}", options.listen)))?;
        let address = listener.local_addr().map_err(system("the address"))?;
        let (stop, stopped) = watch::channel(false);
        let accepting = runtime.spawn(accept(listener, shared, options.input_limit, stopped));
        Ok(Server {
            runtime: Some(runtime),
            address,
            stop,
            accepting: Some(accepting),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for SIGINT or SIGTERM. Then no request is taken any more, and those that are on their way may finish.
    pub fn run_until_signal(self) {
        if let Some(runtime) = &self.runtime {
            runtime.block_on(async {
                let terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
                match terminate {
                    Ok(mut terminate) => {
                        tokio::select! {
                            _ = tokio::signal::ctrl_c() => {}
                            _ = terminate.recv() => {}
                        }
                    }
                    Err(_) => {
                        let _ = tokio::signal::ctrl_c().await;
                    }
                }
            });
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Whoever accepts may have ended.
        let _ = self.stop.send(true);
        if let (Some(runtime), Some(accepting)) = (self.runtime.take(), self.accepting.take()) {
            let _ = runtime.block_on(async { tokio::time::timeout(STOPPING, accepting).await });
            runtime.shutdown_timeout(STOPPING);
        }
    }
}

async fn accept(
    listener: TcpListener,
    shared: Arc<Shared>,
    head_limit: Duration,
    mut stopped: watch::Receiver<bool>,
) {
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.changed() => break,
        };
        let Ok((stream, _)) = accepted else {
            // No descriptors, most often: those that end give some back.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        // Small answers go at once.
        let _ = stream.set_nodelay(true);
        let shared = shared.clone();
        let service = service_fn(move |request| {
            let shared = shared.clone();
            async move { Ok::<_, Infallible>(shared.answer(request).await) }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(head_limit)
            .max_buf_size(64 << 10)
            .serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // It ended in the middle of a request, or of an answer: that is the client's business.
            let _ = connection.await;
        });
    }
    let _ = tokio::time::timeout(STOPPING, graceful.shutdown()).await;
}

/// A text as an answer.
fn text(status: StatusCode, media: &'static str, body: impl Into<Bytes>) -> Response<Reply> {
    let mut response = Response::new(whole(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}

const PLAIN: &str = "text/plain; charset=utf-8";

/// A failure as an answer.
fn failed(failure: Failure) -> Response<Reply> {
    let mut response = text(failure.status, PLAIN, failure.message + "\n");
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    match failure.status {
        StatusCode::UNAUTHORIZED => {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        StatusCode::METHOD_NOT_ALLOWED => {
            headers.insert(header::ALLOW, HeaderValue::from_static(failure.allow));
        }
        StatusCode::SERVICE_UNAVAILABLE => {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        _ => {}
    }
    response
}

fn json(value: &serde_json::Value) -> Response<Reply> {
    text(StatusCode::OK, "application/json", value.to_string())
}

fn not_found() -> Failure {
    Failure::new(
        StatusCode::NOT_FOUND,
        "there are /, /pictures, /pictures/NAME, /functions, /functions/NAME and /metrics",
    )
}

fn not_allowed(allow: &'static str) -> Failure {
    let message = format!("the methods here are {allow}");
    Failure {
        allow,
        ..Failure::new(StatusCode::METHOD_NOT_ALLOWED, message)
    }
}

impl Shared {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Reply> {
        let method = request.method().clone();
        let this = self.clone();
        let response = this.route(request).await.unwrap_or_else(failed);
        self.workshop.metrics.answer(&method, response.status().as_u16());
        response
    }

    async fn route(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Reply>, Failure> {
        let client = self.client(request.headers())?.clone();
        let path = percent_encoding::percent_decode_str(request.uri().path())
            .decode_utf8()
            .map_err(|_| Failure::new(StatusCode::BAD_REQUEST, "the path is not UTF-8"))?
            .into_owned();
        let method = request.method().clone();
        let words: Vec<&str> = path.trim_start_matches('/').splitn(2, '/').collect();
        match (&method, &words[..]) {
            (&Method::GET | &Method::HEAD, [""]) => {
                Ok(text(StatusCode::OK, "text/html; charset=utf-8", PAGE))
            }
            (&Method::GET | &Method::HEAD, ["metrics"]) => {
                let all = self.workshop.metrics.text(&metrics::Now {
                    waiting_domains: self.workshop.codec.waiting(),
                    clients: self.clients.count(),
                    on_their_way: self.limits.requests - self.places.available_permits(),
                });
                Ok(text(StatusCode::OK, metrics::MEDIA, all))
            }
            (&Method::GET | &Method::HEAD, ["pictures"]) => {
                let names = self.store.names().map_err(|e| Failure::internal(&e))?;
                Ok(json(&serde_json::json!({ "pictures": names })))
            }
            (&Method::POST, ["pictures"]) => self.picture_of_body(&client, request).await,
            (&Method::GET | &Method::HEAD, ["pictures", name]) => {
                let name = (*name).to_owned();
                self.picture_of_store(&client, &name, &request).await
            }
            (&Method::GET | &Method::HEAD, ["functions"]) => {
                let all: Vec<_> = client
                    .functions()
                    .into_iter()
                    .map(
                        |(name, declaration)| serde_json::json!({ "name": name, "declaration": declaration }),
                    )
                    .collect();
                Ok(json(
                    &serde_json::json!({ "client": client.name(), "functions": all }),
                ))
            }
            (&Method::DELETE, ["functions"]) => {
                self.may_change(&client)?;
                client.begin_again()?;
                Ok(text(StatusCode::NO_CONTENT, PLAIN, ""))
            }
            (_, ["functions", name]) => {
                let name = (*name).to_owned();
                self.function(&client, &name, request).await
            }
            (_, [""] | ["metrics"] | ["pictures", _]) => Err(not_allowed("GET, HEAD")),
            (_, ["functions"]) => Err(not_allowed("GET, HEAD, DELETE")),
            (_, ["pictures"]) => Err(not_allowed("GET, HEAD, POST")),
            _ => Err(not_found()),
        }
    }

    /// Whose request it is.
    fn client(&self, headers: &HeaderMap) -> Result<&Arc<Client>, Failure> {
        let Some(given) = headers.get(header::AUTHORIZATION) else {
            return Ok(&self.clients.nobody);
        };
        let key = given.to_str().ok().and_then(|text| text.split_once(' '));
        let key = key
            .filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"))
            .map(|(_, key)| key.trim());
        key.and_then(|key| self.clients.find(key)).ok_or_else(|| {
            Failure::new(
                StatusCode::UNAUTHORIZED,
                "nobody has that key; send `Authorization: Bearer KEY`, or nothing for the standard functions",
            )
        })
    }

    /// Whether the functions that a picture is to go through are the client's, before anything is done for it. Those of a module
    /// are looked up in it.
    fn check(&self, client: &Client, wanted: &Wanted) -> Result<(), Failure> {
        match self.workshop.codec.takes_text() {
            true => client.check(&wanted.through),
            false => Ok(()),
        }
    }

    /// Whether functions of the client can be made and taken away.
    fn may_change(&self, client: &Arc<Client>) -> Result<(), Failure> {
        if Arc::ptr_eq(client, &self.clients.nobody) {
            let message =
                "functions are a client's own: send `Authorization: Bearer KEY` (--client NAME:KEY)";
            return Err(Failure::new(StatusCode::UNAUTHORIZED, message));
        }
        if !self.workshop.codec.takes_text() {
            let message = "functions come as text with --backend window only";
            return Err(Failure::new(StatusCode::NOT_IMPLEMENTED, message));
        }
        Ok(())
    }

    async fn function(
        &self,
        client: &Arc<Client>,
        name: &str,
        request: Request<Incoming>,
    ) -> Result<Response<Reply>, Failure> {
        if matches!(*request.method(), Method::GET | Method::HEAD) {
            let missing = || Failure::new(StatusCode::NOT_FOUND, format!("there is no function {name}"));
            let found = client.text(name).ok_or_else(missing)?;
            return Ok(text(StatusCode::OK, PLAIN, found));
        }
        if !matches!(*request.method(), Method::PUT | Method::DELETE) {
            return Err(not_allowed("GET, HEAD, PUT, DELETE"));
        }
        self.may_change(client)?;
        if request.method() == Method::DELETE {
            client.delete(name)?;
            return Ok(text(StatusCode::NO_CONTENT, PLAIN, ""));
        }
        let body = Limited::new(
            request.into_body(),
            usize::try_from(self.limits.text).unwrap_or(usize::MAX),
        );
        let bytes = tokio::time::timeout(self.limits.time, body.collect())
            .await
            .map_err(|_| {
                Failure::new(
                    StatusCode::REQUEST_TIMEOUT,
                    "the text came too slowly (--input-limit)",
                )
            })?
            .map_err(|e| match e.is::<http_body_util::LengthLimitError>() {
                true => Failure::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    format!("the text has more than {} bytes (--text-limit)", self.limits.text),
                ),
                false => Failure::new(StatusCode::BAD_REQUEST, format!("the request broke off: {e}")),
            })?
            .to_bytes();
        let source = std::str::from_utf8(&bytes)
            .map_err(|_| Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "the text is not UTF-8"))?;
        let (status, what) = match client.put(name, source)? {
            Put::Created => (StatusCode::CREATED, "created"),
            Put::Replaced => (StatusCode::OK, "replaced"),
        };
        Ok(text(status, PLAIN, format!("{name} was {what}\n")))
    }

    /// A place for a picture that is on its way.
    fn place(&self) -> Result<tokio::sync::OwnedSemaphorePermit, Failure> {
        self.places.clone().try_acquire_owned().map_err(|_| {
            let message = "too many pictures are on their way (--requests); try again in a second";
            Failure::new(StatusCode::SERVICE_UNAVAILABLE, message)
        })
    }

    /// Makes a picture on a thread that may wait.
    async fn make(&self, client: &Arc<Client>, input: Input, wanted: Wanted) -> Result<Made, Failure> {
        let place = self.place()?;
        let (sender, made) = oneshot::channel();
        let output = Output::new(sender, self.limits.time, Handle::current());
        let (workshop, client) = (self.workshop.clone(), client.clone());
        tokio::task::spawn_blocking(move || {
            workshop.make(&client, input, output, &wanted);
            drop(place);
        });
        let gone = |_| Failure::internal(&"a thread that makes pictures has ended");
        made.await.map_err(gone)?
    }

    fn made(made: Made) -> Response<Reply> {
        let mut response = Response::new(made.body);
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static(made.format.media()),
        );
        headers.insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
        if let Ok(timing) = HeaderValue::from_str(&made.timing) {
            headers.insert("server-timing", timing);
        }
        response
    }

    async fn picture_of_body(
        &self,
        client: &Arc<Client>,
        request: Request<Incoming>,
    ) -> Result<Response<Reply>, Failure> {
        let wanted = Wanted::parse(request.uri().query().unwrap_or_default())?;
        let told = request.headers().get(header::CONTENT_LENGTH);
        let told = told.and_then(|n| n.to_str().ok()?.parse::<u64>().ok());
        if told.is_some_and(|n| n > self.limits.size) {
            return Err(too_large(self.limits.size));
        }
        self.check(client, &wanted)?;
        let input = Input::body(request.into_body(), self.limits.size, self.limits.time);
        let mut response = Self::made(self.make(client, input, wanted).await?);
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(response)
    }

    async fn picture_of_store(
        &self,
        client: &Arc<Client>,
        name: &str,
        request: &Request<Incoming>,
    ) -> Result<Response<Reply>, Failure> {
        let wanted = Wanted::parse(request.uri().query().unwrap_or_default())?;
        let stored = self.store.open(name)?;
        // What is wrong with the request is so for HEAD, and for who has the picture, too.
        self.check(client, &wanted)?;
        let changes = wanted.changes(Format::of_extension(name));
        let tag = self.tag(client, &stored, changes.then_some(&wanted));
        let modified = stored.modified;
        let mut response = if fresh(request.headers(), &tag, (!changes).then_some(modified)) {
            let mut response = Response::new(whole(""));
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else if request.method() == Method::HEAD {
            let mut response = Response::new(whole(""));
            let format = wanted.format.or(Format::of_extension(name));
            let media = format.map_or("application/octet-stream", Format::media);
            response
                .headers_mut()
                .insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
            response
        } else if changes {
            let input = Input::file(stored.file, self.limits.size);
            Self::made(self.make(client, input, wanted).await?)
        } else {
            self.as_it_is(name, stored)?
        };
        let headers = response.headers_mut();
        let cache = match (self.max_age.as_secs(), Arc::ptr_eq(client, &self.clients.nobody)) {
            (0, _) => "no-cache".to_owned(),
            (age, true) => format!("public, max-age={age}"),
            (age, false) => format!("private, max-age={age}"),
        };
        for (name, value) in [(header::ETAG, tag), (header::CACHE_CONTROL, cache)] {
            let value = HeaderValue::from_str(&value).map_err(|e| Failure::internal(&e))?;
            headers.insert(name, value);
        }
        headers.insert(header::VARY, HeaderValue::from_static("Authorization"));
        if !changes {
            let date = httpdate::fmt_http_date(modified);
            let date = HeaderValue::from_str(&date).map_err(|e| Failure::internal(&e))?;
            headers.insert(header::LAST_MODIFIED, date);
        }
        Ok(response)
    }

    /// Which picture it is, of which file, by which functions. A weak tag: functions may keep data from call to call.
    fn tag(&self, client: &Client, stored: &Stored, wanted: Option<&Wanted>) -> String {
        let mut sum = Sha256::new().chain_update(&stored.identity);
        if let Some(wanted) = wanted {
            sum.update(self.version);
            sum.update(wanted.canonical());
            if !wanted.through.is_empty() {
                sum.update(client.version());
            }
        }
        let sum = sum.finalize();
        let digits: String = sum[..16].iter().map(|b| format!("{b:02x}")).collect();
        format!("W/\"{digits}\"")
    }

    /// Sends a file.
    fn as_it_is(&self, name: &str, stored: Stored) -> Result<Response<Reply>, Failure> {
        let place = self.place()?;
        let (parts, body) = Parts::new(Some(stored.length));
        let (mut file, mut left) = (stored.file, stored.length);
        tokio::task::spawn_blocking(move || {
            while left > 0 {
                let mut bytes = vec![0; left.min(PIECE as u64) as usize];
                let part = match file.read(&mut bytes) {
                    Ok(n) if n > 0 => {
                        bytes.truncate(n);
                        left -= n as u64;
                        Ok(bytes.into())
                    }
                    // Somebody has cut the file meanwhile.
                    _ => {
                        left = 0;
                        Err(Broken)
                    }
                };
                if parts.blocking_send(part).is_err() {
                    break;
                }
            }
            drop(place);
        });
        let mut response = Response::new(body);
        let media = Format::of_extension(name).map_or("application/octet-stream", Format::media);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
        headers.insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
        Ok(response)
    }
}

/// Whether the client has this picture already.
fn fresh(headers: &HeaderMap, tag: &str, modified: Option<SystemTime>) -> bool {
    if let Some(known) = headers.get(header::IF_NONE_MATCH) {
        let weak = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        let tag = weak(tag);
        return known
            .to_str()
            .is_ok_and(|known| known.split(',').any(|one| one.trim() == "*" || weak(one) == tag));
    }
    let since = headers.get(header::IF_MODIFIED_SINCE);
    let since = since.and_then(|text| httpdate::parse_http_date(text.to_str().ok()?).ok());
    match (since, modified) {
        // Dates have seconds.
        (Some(since), Some(modified)) => modified < since + Duration::from_secs(1),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_dates_of_what_a_client_has() {
        let tag = "W/\"abc\"";
        let with = |name: header::HeaderName, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            headers
        };
        for known in ["W/\"abc\"", "\"abc\"", "\"x\", W/\"abc\"", "*"] {
            assert!(fresh(&with(header::IF_NONE_MATCH, known), tag, None), "{known}");
        }
        assert!(!fresh(&with(header::IF_NONE_MATCH, "\"x\""), tag, None));
        let date = with(header::IF_MODIFIED_SINCE, "Sun, 06 Nov 1994 08:49:37 GMT");
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert!(fresh(&date, tag, Some(at + Duration::from_millis(900))));
        assert!(!fresh(&date, tag, Some(at + Duration::from_secs(1))));
        assert!(!fresh(&date, tag, None), "made pictures have no date");
        assert!(!fresh(&HeaderMap::new(), tag, Some(at)));
    }
}
