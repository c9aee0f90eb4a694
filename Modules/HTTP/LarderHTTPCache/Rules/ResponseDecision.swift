#if HTTPCache
internal import Foundation
internal import HTTPTypes

/// What happens to a response of the origin. The engine carries the changes out in the order of the properties.
struct ResponseDecision: Sendable {
  /// A response that is stored when its body is complete.
  struct Storing: Sendable {
    /// The response. Its parts are the ones that it takes over from a replaced response; the part that is being
    /// received is added to them when it is complete.
    var response: StoredResponse

    /// The bytes of the representation that are being received. `nil` if the body is the whole representation and its
    /// length isn't known yet.
    var receiving: Range<Int64>?

    /// The positions of the stored responses that are removed when this one is stored. A body that ``response`` still
    /// refers to is kept.
    var replacing: [Int]
  }

  /// A reason for not storing a response.
  enum Refusal: String, Sendable, Hashable, CaseIterable {
    /// The method of the request isn't cacheable, or the response isn't a representation of its URL.
    case method
    /// The status code isn't cacheable, or isn't understood.
    case status
    /// The request or the response has `no-store`.
    case noStore
    /// The response is private and the cache is shared.
    case `private`
    /// The request has `Authorization`, and the response doesn't allow a shared cache to store it.
    case authorization
    /// The response has neither freshness nor a validator, or is stale without a validator.
    case notReusable
    /// `Vary` has `*`, or names too many fields.
    case vary
    /// The response has `Set-Cookie`.
    case setCookie
    /// The response is a part that contradicts itself or can't be stored.
    case part
    /// The head is too large, or has a field that can't be stored.
    case head
    /// The response freshened a stored one, or was of no use to the cache.
    case notNeeded
  }

  /// What the client gets.
  enum Delivery: Sendable {
    /// The response of the origin, with this head.
    case forwarded(HTTPResponse)

    /// A stored response: after a 304, or a stale one in place of an error.
    case stored(Reuse)

    /// A stored response whose missing bytes, ``Storing/receiving``, are the body that is being received.
    case combined(Reuse)

    /// The answer to another request, which must be forwarded now: the origin's response answers no question of the
    /// client.
    case again(Exchange)
  }

  /// The URLs that are invalidated, with all their variants. This happens before anything is stored.
  var invalidated: [String] = []

  /// The stored responses that got a new head, by position.
  var freshened: [(position: Int, response: StoredResponse)] = []

  /// The positions of the stored responses that are removed immediately.
  var removed: [Int] = []

  /// The response to store, or `nil`.
  var storing: Storing?

  /// The reason why nothing is stored.
  var refusal: Refusal?

  /// What the client gets.
  var delivery: Delivery

  /// What the cache did. ``Reuse`` has the same.
  var status: CacheStatus

  /// The number of bytes that the body must have, if the head says so.
  var expectedLength: Int64?
}

/// What happens if the origin gave no response.
enum FailureDecision: Sendable {
  /// A stale stored response answers the request.
  case answer(Reuse)

  /// The request is answered by 504, because the stored response may not be reused without the origin.
  case refuse(head: HTTPResponse, status: CacheStatus)

  /// The error is the client's, because nothing is stored.
  case fail
}

extension HTTPCacheRules {
  /// Decides on a final response of the origin.
  ///
  /// - Parameters:
  ///   - response: The head.
  ///   - exchange: The request that was forwarded.
  ///   - requestTime: The time when it was forwarded.
  ///   - responseTime: The time when the head was received.
  func decide(
    response: HTTPResponse, to exchange: Exchange, requestTime: Date, responseTime: Date
  ) -> ResponseDecision {
    ResponseDecision(
      delivery: .forwarded(response), status: CacheStatus(forward: exchange.reason))
  }

  /// Decides on a request to which the origin gave no response.
  func decide(failureOf exchange: Exchange, now: Date) -> FailureDecision {
    .fail
  }
}
#endif
