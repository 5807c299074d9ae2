//! The port: accepts connections until the tap is dropped, then closes them all at once.

use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::forward::{Tapping, forward};
use crate::timings::TAP_ACCEPT_AGAIN;

/// Runs until `stop`.
pub(super) async fn serve(listener: TcpListener, tapping: Arc<Tapping>, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((socket, _)) => {
                tokio::spawn(connection(socket, Arc::clone(&tapping), stop.clone()));
            }
            Err(error) => {
                tracing::warn!("the tap could not accept a connection: {error}");
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(TAP_ACCEPT_AGAIN) => {}
                }
            }
        }
    }
}

/// Serves one connection. When the client hangs up, hyper drops what it was doing for it, and with
/// that the request upstream; when `stop` fires, everything is dropped.
async fn connection(socket: TcpStream, tapping: Arc<Tapping>, stop: CancellationToken) {
    // Deltas are small, and each is to arrive when it was sent.
    let _ = socket.set_nodelay(true);
    let service = service_fn(move |request| forward(Arc::clone(&tapping), request));
    let mut builder = http1::Builder::new();
    // Headers are the upstream's, not ours.
    builder.auto_date_header(false);
    tokio::select! {
        () = stop.cancelled() => {}
        // How a connection ends is told to the client by its end.
        _ = builder.serve_connection(TokioIo::new(socket), service) => {}
    }
}
