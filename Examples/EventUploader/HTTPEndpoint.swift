import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A server that accepts batches by HTTP.
struct HTTPEndpoint: Endpoint {
  /// An answer that did not accept a batch.
  struct Refusal: Error {
    let status: Int
  }

  private let url: URL
  private let session: URLSession

  /// Creates an endpoint.
  ///
  /// - Parameters:
  ///   - url: The URL of the server.
  ///   - patience: The seconds to wait for an answer. Linux ignores a fraction. Defaults to 1.
  init(url: URL, patience: TimeInterval = 1) {
    self.url = url
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForRequest = patience
    session = URLSession(configuration: configuration)
  }

  func send(_ batch: EventBatch) async throws {
    var request = URLRequest(url: url)
    request.httpMethod = "POST"
    request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    request.httpBody = try JSONEncoder().encode(batch)
    let (_, response) = try await session.data(for: request)
    // Only these status codes are a success.
    let status = (response as? HTTPURLResponse)?.statusCode ?? 0
    guard (200..<300).contains(status) else { throw Refusal(status: status) }
  }
}
