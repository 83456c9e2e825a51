//! Minimal gateway: hyper on both sides, every request forwarded unchanged. Its cost is that of reading and writing
//! HTTP twice.

use hyper::body::Incoming;
use hyper::header::HOST;
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioIo};

type UpstreamClient = Client<HttpConnector, Incoming>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let argument = |name: &str| std::env::args().skip_while(|word| word != name).nth(1);
    let (Some(port), Some(to)) = (argument("--port"), argument("--to")) else {
        panic!("usage: proxy_server --port N --to HOST:PORT");
    };
    let to: &'static str = to.leak();
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: UpstreamClient = Client::builder(TokioExecutor::new()).build(connector);
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let client = client.clone();
        let service = hyper::service::service_fn(move |request| forward(client.clone(), to, request));
        let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        // Ends when the client disconnects.
        tokio::spawn(connection);
    }
}

async fn forward(
    client: UpstreamClient,
    to: &str,
    mut request: Request<Incoming>,
) -> Result<Response<Incoming>, Error> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = Uri::builder().scheme("http").authority(to).path_and_query(path).build().expect("it was one");
    request.headers_mut().remove(HOST);
    client.request(request).await
}
