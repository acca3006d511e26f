//! Tests of access: tokens, certificates, ids.

use std::time::Duration;

use prost::Message;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serdes::{
    ifrt::{AttributeMap, DType, DeviceId, Shape},
    proto::xla::ifrt::proxy::{
        GrpcGetVersionRequest, GrpcGetVersionResponse, GrpcHostBufferDeleteRequest,
        GrpcHostBufferDeleteResponse, GrpcHostBufferLookupRequest, GrpcHostBufferLookupResponse,
        GrpcHostBufferStoreMetadata, GrpcHostBufferStoreRequest, GrpcHostBufferStoreResponse,
        GrpcIfrtSessionMetadata, IfrtRequest, IfrtResponse, InitRequest, RequestMetadata,
        ifrt_request::Request, ifrt_response::Response,
    },
};
use tonic::{Code, Request as Call, codegen::http::uri::PathAndQuery, metadata::MetadataValue};
use tonic_prost::ProstCodec;

use super::network::{Running, plugin, test};
use crate::{
    Client, ClientOptions, ProxyError, Ranges, negotiate_with, requests,
    server::{Server, Tokens},
    service,
};

/// A client without the client library: its source address, and the token that it sends.
pub(crate) struct Caller<'a> {
    pub(crate) server: &'a str,
    pub(crate) from: &'static str,
    pub(crate) token: Option<&'static str>,
}

impl Caller<'_> {
    async fn grpc(&self) -> tonic::client::Grpc<tonic::transport::Channel> {
        let endpoint =
            tonic::transport::Endpoint::from_shared(format!("http://{}", self.server)).unwrap();
        let endpoint = endpoint.local_address(Some(self.from.parse().unwrap()));
        let mut grpc = tonic::client::Grpc::new(endpoint.connect().await.unwrap());
        grpc.ready().await.unwrap();
        grpc
    }

    fn call<T>(&self, message: T) -> Call<T> {
        let mut call = Call::new(message);
        if let Some(token) = self.token {
            call.metadata_mut().insert("authorization", token.parse().unwrap());
        }
        call
    }

    async fn unary<T, U>(&self, path: &'static str, message: T) -> Result<U, tonic::Status>
    where
        T: Message + Send + Sync + 'static,
        U: Message + Default + Send + Sync + 'static,
    {
        let codec: ProstCodec<T, U> = ProstCodec::default();
        let path = PathAndQuery::from_static(path);
        let answer = self.grpc().await.unary(self.call(message), path, codec).await;
        answer.map(tonic::Response::into_inner)
    }

    pub(crate) async fn get_version(&self) -> Result<(), Code> {
        let answer = self.unary::<GrpcGetVersionRequest, GrpcGetVersionResponse>(
            service::GET_VERSION,
            crate::handshake::to_request(Ranges::supported()),
        );
        answer.await.map(drop).map_err(|status| status.code())
    }

    pub(crate) async fn store(
        &self,
        session_id: u64,
        handle: u64,
        data: &'static [u8],
    ) -> Result<(), tonic::Status> {
        let metadata =
            GrpcHostBufferStoreMetadata { session_id, handle, buffer_size: data.len() as i64 };
        let chunks = [GrpcHostBufferStoreRequest { data: data.into() }];
        let mut call = self.call(tokio_stream::iter(chunks));
        let value = MetadataValue::from_bytes(&metadata.encode_to_vec());
        call.metadata_mut().insert_bin(service::STORE_METADATA, value);
        let codec: ProstCodec<GrpcHostBufferStoreRequest, GrpcHostBufferStoreResponse> =
            ProstCodec::default();
        let path = PathAndQuery::from_static(service::HOST_BUFFER_STORE);
        self.grpc().await.client_streaming(call, path, codec).await.map(drop)
    }

    async fn delete(&self, session_id: u64, handle: u64) -> Result<(), tonic::Status> {
        let request = GrpcHostBufferDeleteRequest { session_id, handle };
        let deleted =
            self.unary::<_, GrpcHostBufferDeleteResponse>(service::HOST_BUFFER_DELETE, request);
        deleted.await.map(drop)
    }

    async fn look_up(&self, session_id: u64, handle: u64) -> Result<Vec<u8>, tonic::Status> {
        let codec: ProstCodec<GrpcHostBufferLookupRequest, GrpcHostBufferLookupResponse> =
            ProstCodec::default();
        let path = PathAndQuery::from_static(service::HOST_BUFFER_LOOKUP);
        let request = self.call(GrpcHostBufferLookupRequest { session_id, handle });
        let mut answer =
            self.grpc().await.server_streaming(request, path, codec).await?.into_inner();
        let mut bytes = Vec::new();
        while let Some(message) = answer.message().await? {
            bytes.extend_from_slice(&message.data);
        }
        Ok(bytes)
    }

    /// Opens a session with this initialization data, and sends `requests`; returns the first
    /// answer, and the stream.
    pub(crate) async fn session(
        &self,
        data: AttributeMap,
        requests: Vec<Request>,
    ) -> Result<(Option<IfrtResponse>, OpenSession), tonic::Status> {
        let agreement = crate::Handshake::answer(Ranges::supported(), Ranges::supported()).unwrap();
        let metadata: GrpcIfrtSessionMetadata =
            requests::session_metadata(agreement, &data).unwrap();
        let asked = !requests.is_empty();
        let requests = requests.into_iter().enumerate().map(|(at, request)| IfrtRequest {
            request_metadata: Some(RequestMetadata { op_id: at as u64 + 1, ..Default::default() }),
            request: Some(request),
        });
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        requests.for_each(|request| sender.send(request).unwrap());
        let mut call = self.call(tokio_stream::wrappers::UnboundedReceiverStream::new(receiver));
        let value = MetadataValue::from_bytes(&metadata.encode_to_vec());
        call.metadata_mut().insert_bin(service::SESSION_METADATA, value);
        let codec: ProstCodec<IfrtRequest, IfrtResponse> = ProstCodec::default();
        let path = PathAndQuery::from_static(service::IFRT_SESSION);
        let mut answers = self.grpc().await.streaming(call, path, codec).await?.into_inner();
        let first = if asked { answers.message().await? } else { None };
        Ok((first, OpenSession { answers, _requests: sender }))
    }
}

/// A session that stays open until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenSession {
    pub(crate) answers: tonic::Streaming<IfrtResponse>,
    _requests: tokio::sync::mpsc::UnboundedSender<IfrtRequest>,
}

/// Returns the id in the first answer of a session.
fn id_of(answer: Option<IfrtResponse>) -> u64 {
    match answer.unwrap().response {
        Some(Response::InitResponse(init)) => init.session_id,
        other => panic!("{other:?}"),
    }
}

fn init() -> Vec<Request> {
    vec![Request::InitRequest(InitRequest {})]
}

#[test]
fn host_buffers_are_only_for_the_client_of_their_session() {
    test(|| async {
        let running = Running::start(Server::builder(&plugin()).build().unwrap()).await;
        let caller = |from| Caller { server: &running.address, from, token: None };
        let (owner, outsider) = (caller("127.0.0.1"), caller("127.0.0.2"));
        let (answer, _open) = owner.session(AttributeMap::new(), init()).await.unwrap();
        let id = id_of(answer);
        owner.store(id, 2, b"secret").await.unwrap();
        let refused = [
            outsider.look_up(id, 2).await.unwrap_err(),
            outsider.store(id, 9, b"EVIL").await.unwrap_err(),
            outsider.delete(id, 2).await.unwrap_err(),
        ];
        let unknown = outsider.look_up(id ^ 1, 2).await.unwrap_err();
        for status in refused {
            assert_eq!(status.code(), Code::NotFound);
            // The session of another client cannot be distinguished from a missing one.
            assert_eq!(
                status.message(),
                unknown.message().replace(&(id ^ 1).to_string(), &id.to_string())
            );
        }
        assert_eq!(owner.look_up(id, 2).await.unwrap(), b"secret");
        assert_eq!(owner.look_up(id, 9).await.unwrap_err().code(), Code::NotFound);
        running.stop().await.unwrap();
    });
}

#[test]
fn ids_of_sessions_and_handles_of_the_server_cannot_be_guessed() {
    test(|| async {
        let server = Server::builder(&plugin()).build().unwrap();
        let mut numbers = Vec::new();
        for _ in 0..32 {
            let session = server.local_session(Ranges::supported()).unwrap();
            numbers.push(session.session().id);
            let mut handles = session.session().table().claim(&[], 2).unwrap();
            assert!(handles.iter().all(|handle| *handle >= 1 << 63));
            numbers.append(&mut handles);
        }
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count);
        // Among this many random numbers no two are as close as consecutive numbers; the odds are
        // one in 10^14.
        assert!(numbers.windows(2).all(|pair| pair[1] - pair[0] > 1 << 8), "{numbers:?}");
    });
}

#[test]
fn every_call_needs_one_of_the_tokens() {
    test(|| async {
        let tokens =
            Tokens::parse("# of the team\nfirst-token-of-two\n\nsecond-token-of-two # until May\n")
                .unwrap();
        let running =
            Running::start(Server::builder(&plugin()).tokens(tokens).build().unwrap()).await;
        let caller = |token| Caller { server: &running.address, from: "127.0.0.1", token };
        for token in [
            None,
            Some("Bearer first"),
            Some("Bearer "),
            Some("Basic first-token-of-two"),
            Some("first-token-of-two"),
            Some("Bearer first-token-of-two-"),
        ] {
            let unauthenticated = caller(token);
            assert_eq!(
                unauthenticated.get_version().await,
                Err(Code::Unauthenticated),
                "{token:?}"
            );
            let opened = unauthenticated.session(AttributeMap::new(), init()).await;
            assert_eq!(opened.unwrap_err().code(), Code::Unauthenticated);
            let data = AttributeMap::from_iter([("serdes.token", "first-token-of-two".into())]);
            assert_eq!(
                unauthenticated.session(data, init()).await.unwrap_err().code(),
                Code::Unauthenticated
            );
            assert_eq!(
                unauthenticated.store(1, 1, b"").await.unwrap_err().code(),
                Code::Unauthenticated
            );
            assert_eq!(
                unauthenticated.look_up(1, 1).await.unwrap_err().code(),
                Code::Unauthenticated
            );
            assert_eq!(
                unauthenticated.delete(1, 1).await.unwrap_err().code(),
                Code::Unauthenticated
            );
        }
        for token in ["Bearer first-token-of-two", "bearer second-token-of-two"] {
            assert_eq!(caller(Some(token)).get_version().await, Ok(()));
        }
        assert_eq!(running.server.metrics().unauthenticated, 36);
        let error = negotiate_with(&running.address, &ClientOptions::default()).await.unwrap_err();
        assert!(error.to_string().contains("UNAUTHENTICATED") && !error.is_refusal(), "{error}");
        running.stop().await.unwrap();
    });
}

#[test]
fn a_client_with_a_token_works_until_the_token_goes() {
    test(|| async {
        let tokens = |text| Tokens::parse(text).unwrap();
        let server = Server::builder(&plugin())
            .tokens(tokens("old-token-of-three\ntoken-that-stays"))
            .build()
            .unwrap();
        let running = Running::start(server).await;
        let connect = async |token| {
            Client::connect_with(&running.address, ClientOptions::default().with_token(token)).await
        };
        let (leaves, stays) = (
            connect("old-token-of-three").await.unwrap(),
            connect("token-that-stays").await.unwrap(),
        );
        let shape = Shape::new([3]).unwrap();
        let array = leaves.put(DType::U8, &shape, DeviceId(0), &b"abc"[..]).await.unwrap();
        assert_eq!(&leaves.get(&array).await.unwrap()[..], b"abc");
        let kept = stays.put(DType::U8, &shape, DeviceId(1), &b"xyz"[..]).await.unwrap();
        running.server.replace_tokens(tokens("token-that-stays\nnew-token-of-three"));
        assert!(leaves.get(&array).await.is_err());
        assert!(connect("old-token-of-three").await.is_err());
        assert_eq!(&stays.get(&kept).await.unwrap()[..], b"xyz");
        connect("new-token-of-three").await.unwrap();
        drop((array, kept, leaves, stays));
        running.stop().await.unwrap();
    });
}

#[test]
fn a_session_may_bring_its_token_where_the_server_allows_it() {
    test(|| async {
        let tokens = Tokens::parse("a-token-that-is-long").unwrap();
        let server = Server::builder(&plugin()).tokens(tokens).session_tokens().build().unwrap();
        let running = Running::start(server).await;
        let caller = |from| Caller { server: &running.address, from, token: None };
        let (owner, outsider) = (caller("127.0.0.1"), caller("127.0.0.2"));
        assert_eq!(owner.get_version().await, Ok(()));
        let with = |token: &'static str| AttributeMap::from_iter([("serdes.token", token.into())]);
        for (data, words) in [
            (AttributeMap::new(), "this server wants a token"),
            (with("another"), "the token is none of this server's"),
        ] {
            let refused = owner.session(data, init()).await.unwrap_err();
            assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
            assert!(refused.message().contains(words), "{refused}");
        }
        assert_eq!(running.server.metrics().unauthenticated, 2);
        let data = AttributeMap::from_iter([("serdes.token", "a-token-that-is-long".into())]);
        let (answer, _open) = owner.session(data, init()).await.unwrap();
        let id = id_of(answer);
        owner.store(id, 1, b"mine").await.unwrap();
        assert_eq!(owner.look_up(id, 1).await.unwrap(), b"mine");
        assert_eq!(outsider.look_up(id, 1).await.unwrap_err().code(), Code::NotFound);
        let wrong = Caller { token: Some("Bearer wrong"), ..caller("127.0.0.1") };
        assert_eq!(wrong.get_version().await, Err(Code::Unauthenticated));
        running.stop().await.unwrap();
    });
}

#[test]
fn tokens_that_cannot_be_sent_are_refused_without_their_text() {
    for text in ["", "# nothing\n\n", "two words", "t\u{f6}ken", "good\nin:valid"] {
        let error = Tokens::parse(text).unwrap_err().to_string();
        assert!(!error.contains("words") && !error.contains("valid"), "{error}");
    }
    let text = "a-token-in-a-line\r\nb-token-in-a-line=\r\n";
    assert_eq!(Tokens::parse(text).unwrap().len(), 2);
}

#[test]
fn tokens_that_are_short_are_refused_with_their_line() {
    let long = "x".repeat(Tokens::SHORTEST);
    assert_eq!(Tokens::parse(&long).unwrap().len(), 1);
    let short = "y".repeat(Tokens::SHORTEST - 1);
    for text in [format!("{long}\n{short}\n"), format!("# two\n{short} # a comment that is long\n")]
    {
        let said = Tokens::parse(&text).unwrap_err().to_string();
        assert!(said.contains("line 2") && said.contains("at least 16"), "{said}");
        assert!(!said.contains(&short), "{said}");
    }
}

/// Returns a certificate of an authority, and its key, in PEM.
fn signed(name: &str, issuer: &Issuer<'_, KeyPair>) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, issuer).unwrap();
    (certificate.pem(), key.serialize_pem())
}

fn authority() -> (String, Issuer<'static, KeyPair>) {
    let mut parameters = CertificateParams::new(Vec::<String>::new()).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    (certificate.pem(), Issuer::new(parameters, key))
}

#[test]
fn only_clients_with_a_certificate_of_the_authority_get_in() {
    test(|| async {
        let (authority_pem, issuer) = authority();
        let (certificate, key) = signed("localhost", &issuer);
        let server = Server::builder(&plugin())
            .tls(&certificate, &key)
            .client_authorities(&authority_pem)
            .tokens(Tokens::parse("a-token-that-is-long").unwrap());
        let running = Running::start(server.build().unwrap()).await;
        let address = format!("https://{}", running.address);
        let options = || ClientOptions {
            certificate_authority: Some(authority_pem.clone().into_bytes()),
            server_name: Some("localhost".to_owned()),
            timeout: Duration::from_secs(5),
            ..ClientOptions::default()
        };
        let (own, own_key) = signed("a client", &issuer);
        let (_, foreign) = authority();
        let (other, other_key) = signed("a client", &foreign);
        let certified = || options().with_certificate(own.as_bytes(), own_key.as_bytes());

        let client = Client::connect_with(&address, certified().with_token("a-token-that-is-long"))
            .await
            .unwrap();
        let shape = Shape::new([3]).unwrap();
        let array = client.put(DType::U8, &shape, DeviceId(0), &b"abc"[..]).await.unwrap();
        assert_eq!(&client.get(&array).await.unwrap()[..], b"abc");

        let without =
            Client::connect_with(&address, options().with_token("a-token-that-is-long")).await;
        assert!(matches!(without, Err(ProxyError::Connection { .. })), "{without:?}");
        // If only the end of the connection is seen, the message names the possible reason.
        let without = without.unwrap_err().to_string();
        assert!(without.contains("a certificate of its clients"), "{without}");
        let plain = Client::connect_with(&running.address, options()).await.unwrap_err();
        assert!(plain.to_string().contains("begins with https://"), "{plain}");
        let wrong = options().with_certificate(other.as_bytes(), other_key.as_bytes());
        let wrong = Client::connect_with(&address, wrong.with_token("a-token-that-is-long")).await;
        assert!(matches!(wrong, Err(ProxyError::Connection { .. })), "{wrong:?}");
        // The certificate and the token are both required.
        let error = Client::connect_with(&address, certified()).await.unwrap_err();
        assert!(matches!(error, ProxyError::Status(_)), "{error}");
        drop((array, client));
        running.stop().await.unwrap();

        let plain = Server::builder(&plugin()).client_authorities(&authority_pem).build();
        assert!(matches!(plain, Err(ProxyError::Configuration { .. })));
        let nothing =
            Server::builder(&plugin()).tls(&certificate, &key).client_authorities("none").build();
        assert!(matches!(nothing, Err(ProxyError::Configuration { .. })));
    });
}

#[test]
fn certificates_are_exchanged_while_the_server_runs() {
    test(|| async {
        let (old_authority, old_issuer) = authority();
        let (new_authority, new_issuer) = authority();
        let (certificate, key) = signed("localhost", &old_issuer);
        let server = Server::builder(&plugin()).tls(&certificate, &key).build().unwrap();
        let running = Running::start(server).await;
        let address = format!("https://{}", running.address);
        let trusting = |authority: &str| ClientOptions {
            certificate_authority: Some(authority.to_owned().into_bytes()),
            server_name: Some("localhost".to_owned()),
            timeout: Duration::from_secs(5),
            ..ClientOptions::default()
        };
        let client = Client::connect_with(&address, trusting(&old_authority)).await.unwrap();
        let (certificate, key) = signed("localhost", &new_issuer);
        // An unusable certificate changes nothing.
        let (other, _) = signed("localhost", &old_issuer);
        for (certificate, key) in [("none", &key), (&other, &key)] {
            let replaced = running.server.replace_certificates(certificate, key, None);
            assert!(matches!(replaced, Err(ProxyError::Configuration { .. })), "{replaced:?}");
        }
        negotiate_with(&address, &trusting(&old_authority)).await.unwrap();
        running.server.replace_certificates(&certificate, &key, None).unwrap();
        negotiate_with(&address, &trusting(&new_authority)).await.unwrap();
        assert!(negotiate_with(&address, &trusting(&old_authority)).await.is_err());
        // The authority of the clients' certificates is replaced as well.
        let wanted = Some(new_authority.as_bytes());
        running.server.replace_certificates(&certificate, &key, wanted).unwrap();
        assert!(negotiate_with(&address, &trusting(&new_authority)).await.is_err());
        let (own, own_key) = signed("a client", &new_issuer);
        let certified = trusting(&new_authority).with_certificate(own, own_key);
        negotiate_with(&address, &certified).await.unwrap();
        // The earlier connection still works.
        let shape = Shape::new([3]).unwrap();
        let array = client.put(DType::U8, &shape, DeviceId(0), &b"abc"[..]).await.unwrap();
        drop((array, client));
        running.stop().await.unwrap();

        let plain = Server::builder(&plugin()).build().unwrap();
        let replaced = plain.replace_certificates(&certificate, &key, None);
        assert!(matches!(replaced, Err(ProxyError::Configuration { .. })), "{replaced:?}");
    });
}
