import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A server that takes batches by HTTP.
struct HTTPEndpoint: Endpoint {
  /// The server did not take a batch.
  struct Refusal: Error {
    let status: Int
  }

  private let url: URL
  private let session: URLSession

  /// Makes an endpoint.
  ///
  /// - Parameters:
  ///   - url: Where the server is.
  ///   - patience: How many seconds it waits for an answer, whole ones: a fraction is dropped on Linux. 1 unless given.
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
    // That an answer came is no success: only these numbers are.
    let status = (response as? HTTPURLResponse)?.statusCode ?? 0
    guard (200..<300).contains(status) else { throw Refusal(status: status) }
  }
}
