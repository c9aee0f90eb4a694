#if HTTPCache
import Foundation
import HTTPTypes

@testable import HTTPCachingRules

/// A cache in memory that carries out the decisions of the rules on whole bodies, without tasks and storage.
///
/// Its time is the caller's. It is the simplest engine that there can be, so that a test of the rules tests nothing else.
struct RulesCache {
  /// A response to a client.
  struct Response {
    var head: HTTPResponse
    var body: [UInt8]
    var status: CacheStatus

    /// The request that refreshes the stored response in the background.
    var refresh: Exchange?
  }

  /// The next step of a request.
  enum Step {
    case answer(Response)
    case forward(Exchange)
  }

  /// A response that says what is wrong with the rules' own bookkeeping.
  struct Inconsistency: Error, CustomStringConvertible {
    var description: String
  }

  var rules: HTTPCacheRules
  private(set) var stored: [String: [StoredResponse]] = [:]
  private var bodies: [BodyIdentifier: [UInt8]] = [:]
  private var lastBody: UInt64 = 0

  init(_ rules: HTTPCacheRules) {
    self.rules = rules
  }

  /// Decides on a request.
  func begin(
    _ request: HTTPRequest, policy: HTTPCachePolicy = .standard, at now: Date
  ) throws -> Step {
    let url = try RequestURL(of: request).text
    switch rules.decide(request: request, url: url, policy: policy, stored: stored[url] ?? [], now: now) {
    case .answer(let reuse): return .answer(try response(reuse))
    case .forward(let exchange): return .forward(exchange)
    case .refuse(let head, let status): return .answer(Response(head: head, body: [], status: status))
    }
  }

  /// Decides on the response of the origin.
  mutating func finish(
    _ exchange: Exchange, with head: HTTPResponse, body: [UInt8], sent: Date, received: Date
  ) throws -> Step {
    let decision = rules.decide(response: head, to: exchange, requestTime: sent, responseTime: received)
    for url in decision.invalidated { stored[url] = nil }
    var arriving: (range: Range<Int64>, part: StoredPart)?
    var isComplete = decision.expectedLength.map { $0 == body.count } ?? true
    if let receiving = decision.storing?.receiving, receiving.count != body.count { isComplete = false }

    let range = decision.storing?.receiving ?? 0..<Int64(body.count)
    if isComplete, exchange.request.method != .head {
      lastBody += 1
      let identifier = BodyIdentifier(high: 0, low: lastBody)
      bodies[identifier] = body
      arriving = (range, StoredPart(range: range, body: identifier, bodyStart: range.lowerBound))
    }
    let step: Step
    switch decision.delivery {
    case .forwarded(let head):
      step = .answer(Response(head: head, body: body, status: decision.status))
    case .stored(let reuse): step = .answer(try response(reuse))
    case .combined(var reuse, let receiving):
      guard let arriving, arriving.range == receiving else { throw Inconsistency(description: "another range arrives") }
      reuse.response.parts = Self.joined(reuse.response.parts, arriving.part)
      step = .answer(try response(reuse))
    case .again(let next): step = .forward(next)
    }
    var list = exchange.stored
    var gone = Set(decision.removed)
    for (position, response) in decision.freshened { list[position] = response }
    var added: [StoredResponse] = []
    if var storing = decision.storing, isComplete {
      gone.formUnion(storing.replacing)
      if let arriving, !(storing.response.parts.isEmpty && arriving.range.isEmpty) {
        storing.response.parts = Self.joined(storing.response.parts, arriving.part)
        if storing.receiving == nil { storing.response.length = Int64(body.count) }
      } else {
        storing.response.length = 0
      }
      added = [storing.response]
    }
    if decision.invalidated.isEmpty {
      stored[exchange.url] = added + list.indices.filter { !gone.contains($0) }.map { list[$0] }
    } else {
      stored[exchange.url] = added
    }
    return step
  }

  /// Decides on a request that the origin didn't answer.
  ///
  /// Returns `nil` if the client gets the error.
  func fail(_ exchange: Exchange, at now: Date) throws -> Response? {
    switch rules.decide(failureOf: exchange, now: now) {
    case .answer(let reuse): return try response(reuse)
    case .refuse(let head, let status): return Response(head: head, body: [], status: status)
    case .fail: return nil
    }
  }

  private static func joined(_ parts: [StoredPart], _ part: StoredPart) -> [StoredPart] {
    (parts + [part]).sorted { $0.range.lowerBound < $1.range.lowerBound }
  }

  private func response(_ reuse: Reuse) throws -> Response {
    var body: [UInt8] = []
    if reuse.hasBody {
      guard let range = reuse.bodyRange, let pieces = reuse.response.pieces(of: range) else {
        throw Inconsistency(description: "the body of an answer isn't stored")
      }
      for piece in pieces {
        guard let bytes = bodies[piece.body], piece.rangeInBody.upperBound <= bytes.count else {
          throw Inconsistency(description: "a part is longer than its body")
        }
        body += bytes[Int(piece.rangeInBody.lowerBound)..<Int(piece.rangeInBody.upperBound)]
      }
      guard body.count == range.count else { throw Inconsistency(description: "the pieces aren't the range") }
    }
    return Response(head: reuse.head, body: body, status: reuse.status, refresh: reuse.refresh)
  }
}
#endif
