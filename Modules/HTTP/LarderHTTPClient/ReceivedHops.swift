import Larder
#if HTTPClient
internal import AsyncHTTPClient
internal import NIOHTTP1

/// The responses that the client has received by following redirects itself.
///
/// AsyncHTTPClient does so if its configuration says so and it can send the request to the new URL: always if the new
/// request is a `GET` for a `POST`, and otherwise if it can send the body twice. The first response is then the one to the
/// request, without its body. The others answer the next requests without being sent again.
final class ReceivedHops: Sendable {
  private struct State {
    /// The requests with the heads of their responses; the last one has the body of `response`.
    var hops: ArraySlice<HTTPClientRequestResponse> = []
    var response: HTTPClientResponse?
  }

  private let state = Locked(State())

  /// The next request that the client has sent, or `nil` if it has followed no redirect.
  var nextRequest: HTTPClientRequest? { state.withLock { $0.hops.first?.request } }

  /// Takes a response apart that the client has received.
  ///
  /// - Returns: The response to the request that was sent.
  func receive(_ response: HTTPClientResponse) -> HTTPClientResponse {
    guard response.history.count > 1 else { return response }
    state.withLock { $0 = State(hops: response.history.dropFirst(), response: response) }
    return Self.headOnly(response.history[0])
  }

  /// Returns the response to a request if the client has it already, and removes it.
  func take(for request: HTTPClientRequest) -> HTTPClientResponse? {
    state.withLock { state in
      guard let hop = state.hops.first, hop.request.url == request.url, hop.request.method == request.method,
        hop.request.headers == request.headers
      else { return nil }
      state.hops.removeFirst()
      defer { if state.hops.isEmpty { state.response = nil } }
      return state.hops.isEmpty ? state.response : Self.headOnly(hop)
    }
  }

  /// Returns a response of which only the head is known.
  private static func headOnly(_ hop: HTTPClientRequestResponse) -> HTTPClientResponse {
    var headers = hop.responseHead.headers
    headers.remove(name: "Content-Length")
    return HTTPClientResponse(
      version: hop.responseHead.version, status: hop.responseHead.status, headers: headers, history: [hop])
  }
}
#endif
