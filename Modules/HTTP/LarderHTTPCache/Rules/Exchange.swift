#if HTTPCache
internal import Foundation
internal import HTTPTypes

/// A request that is forwarded to the origin, with everything that the decision on its response needs.
struct Exchange: Sendable {
  /// The reason for forwarding.
  enum Purpose: Sendable, Equatable {
    /// The origin's response is the answer.
    case forward

    /// The stored responses at these positions are validated.
    case validate([Int])

    /// The missing bytes of the stored response at a position are fetched.
    case complete(Int, missing: Range<Int64>)
  }

  /// The request of the client.
  var request: HTTPRequest

  /// The request that is sent to the origin.
  var forwarded: HTTPRequest

  /// The URL of the request, as ``RequestURL`` writes it.
  var url: String

  /// The partition of the request.
  var partition: [UInt8]

  /// The policy of the request.
  var policy: HTTPCachePolicy

  /// The stored responses for the URL, as they were when the request was decided. Positions below refer to this list.
  var stored: [StoredResponse]

  /// The reason for forwarding.
  var purpose: Purpose

  /// The reason for forwarding, as `Cache-Status` says it.
  var reason: CacheStatus.ForwardReason
}

/// The form in which a stored response answers a request.
enum Answer: Sendable, Equatable {
  /// The whole response.
  case whole

  /// The head alone, for `HEAD`.
  case headOnly

  /// 304, because the client has the response.
  case notModified

  /// 206 with these bytes.
  case partial(Range<Int64>)

  /// 416, because no byte of the range exists.
  case rangeNotSatisfiable
}

/// A stored response that answers a request.
struct Reuse: Sendable {
  /// The position of the stored response in the list that was given.
  var position: Int

  /// The stored response, with the head that a validation updated.
  var response: StoredResponse

  /// The form of the answer.
  var answer: Answer

  /// The head for the client, with `Age`, `Cache-Status`, `Content-Length` and `Content-Range`.
  var head: HTTPResponse

  /// What the cache did.
  var status: CacheStatus

  /// The request that refreshes the response in the background, for `stale-while-revalidate`.
  var refresh: Exchange?

  /// The bytes of the representation in the answer's body. `nil` for no body, or for the whole of a body whose length
  /// isn't known yet.
  var bodyRange: Range<Int64>? {
    switch answer {
    case .whole: response.length.map { 0..<$0 }
    case .partial(let range): range
    case .headOnly, .notModified, .rangeNotSatisfiable: nil
    }
  }

  /// Whether the answer has a body.
  var hasBody: Bool {
    switch answer {
    case .whole, .partial: true
    case .headOnly, .notModified, .rangeNotSatisfiable: false
    }
  }
}
#endif
