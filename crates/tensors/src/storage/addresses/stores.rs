//! Clients of object storage, configured by the environment.

use std::{io, sync::Arc, time::Duration};

use object_store::{
    BackoffConfig, Error as StoreError, ObjectStore, RetryConfig, aws::AmazonS3Builder,
    azure::MicrosoftAzureBuilder, gcp::GoogleCloudStorageBuilder, list::PaginatedListStore,
};
use serdes_files::object::system_error;

use super::{address::Scheme, bucket::Client, client::Connector, profiles};

/// Longest time for retries: the user waits meanwhile.
const LONGEST_RETRY: Duration = Duration::from_secs(60);
/// Number of retries.
const RETRIES: usize = 5;

/// Creates the client of a bucket, with the credentials, the region and the endpoint from the
/// environment: `AWS_…` and its profile; `GOOGLE_…`, `AZURE_…`.
///
/// # Errors
/// If the environment's configuration is incomplete or invalid.
pub(super) fn connect(scheme: Scheme, bucket: &str) -> io::Result<Client> {
    let retry = RetryConfig {
        backoff: BackoffConfig { max_backoff: Duration::from_secs(5), ..BackoffConfig::default() },
        max_retries: RETRIES,
        retry_timeout: LONGEST_RETRY,
    };
    let client = match scheme {
        Scheme::S3 => profiles::complete(AmazonS3Builder::from_env())?
            .with_bucket_name(bucket)
            .with_retry(retry)
            .with_http_connector(Connector)
            .build()
            .map(client),
        Scheme::Google => GoogleCloudStorageBuilder::from_env()
            .with_bucket_name(bucket)
            .with_retry(retry)
            .with_http_connector(Connector)
            .build()
            .map(client),
        Scheme::Azure => MicrosoftAzureBuilder::from_env()
            .with_container_name(bucket)
            .with_retry(retry)
            .with_http_connector(Connector)
            .build()
            .map(client),
    };
    client.map_err(|error: StoreError| {
        let error = system_error(error);
        io::Error::new(error.kind(), format!("the environment describes no client: {error}"))
    })
}

fn client<S: ObjectStore + PaginatedListStore>(store: S) -> Client {
    let store = Arc::new(store);
    Client { pages: Some(Arc::clone(&store) as _), store }
}
