#if HTTPCache
import Foundation
import HTTPTypes

@testable import HTTPCachingRules

/// A cache in memory that carries out the decisions of the rules on whole bodies, without tasks and storage.
///
/// Its time is the caller's. It is the simplest engine that there can be, so a test of the rules tests nothing else.
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

  /// The reason for which the last response of the origin was not stored.
  private(set) var refusal: ResponseDecision.Refusal?

  /// Bytes of a representation.
  private struct Piece {
    var range: Range<Int64>
    var bytes: [UInt8]

    /// Returns the piece that is left in a range, or `nil` if there isn't one.
    func cut(to other: Range<Int64>) -> Piece? {
      let rest = range.clamped(to: other)
      let start = Int(rest.lowerBound - range.lowerBound)
      return rest.isEmpty ? nil : Piece(range: rest, bytes: Array(bytes[start..<(start + rest.count)]))
    }
  }

  /// The pieces of the stored responses, by the data that their responses have.
  private var bodies: [[UInt8]: [Piece]] = [:]

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
    refusal = decision.refusal
    for url in decision.invalidated { stored[url] = nil }
    var isComplete = decision.expectedLength.map { $0 == body.count } ?? true
    if let receiving = decision.storing?.receiving, receiving.count != body.count { isComplete = false }
    var range = decision.storing?.receiving ?? 0..<Int64(body.count)
    if case .combined(_, let receiving) = decision.delivery, decision.storing == nil { range = receiving }
    let arriving = isComplete && exchange.request.method != .head ? [Piece(range: range, bytes: body)] : []
    let step: Step
    switch decision.delivery {
    case .forwarded(let head):
      step = .answer(Response(head: head, body: body, status: decision.status))
    case .stored(let reuse): step = .answer(try response(reuse))
    case .combined(let reuse, let receiving):
      guard arriving.first?.range == receiving else { throw Inconsistency(description: "another range arrives") }
      step = .answer(try response(reuse, arriving))
    case .again(let next): step = .forward(next)
    }
    var list = exchange.stored
    var gone = Set(decision.removed)
    for (position, response) in decision.freshened { list[position] = response }
    var added: [StoredResponse] = []
    if let storing = decision.storing, isComplete {
      gone.formUnion(storing.replacing)
      added = [try store(storing, of: exchange, arriving.filter { !$0.range.isEmpty })]
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

  /// Stores a response whose body is complete.
  private mutating func store(
    _ storing: ResponseDecision.Storing, of exchange: Exchange, _ arriving: [Piece]
  ) throws -> StoredResponse {
    var response = storing.response
    let old = storing.extending.flatMap { bodies[exchange.stored[$0].userData] } ?? []
    let kept = response.ranges.flatMap { range in old.compactMap { $0.cut(to: range) } }
    guard kept.map(\.range) == response.ranges else { throw Inconsistency(description: "other ranges are kept") }
    let pieces = (kept + arriving).sorted { $0.range.lowerBound < $1.range.lowerBound }
    response.ranges = pieces.map(\.range)
    if storing.receiving == nil { response.length = Int64(arriving.reduce(0) { $0 + $1.bytes.count }) }
    response.userData = Array("\(bodies.count)".utf8)
    bodies[response.userData] = pieces
    return response
  }

  private func response(_ reuse: Reuse, _ arriving: [Piece] = []) throws -> Response {
    var body: [UInt8] = []
    if reuse.hasBody {
      guard let range = reuse.bodyRange, let stored = bodies[reuse.response.userData] else {
        throw Inconsistency(description: "the body of an answer isn't stored")
      }
      for piece in (stored + arriving).sorted(by: { $0.range.lowerBound < $1.range.lowerBound }) {
        body += piece.cut(to: range)?.bytes ?? []
      }
      guard body.count == range.count else { throw Inconsistency(description: "the pieces aren't the range") }
    }
    return Response(head: reuse.head, body: body, status: reuse.status, refresh: reuse.refresh)
  }
}
#endif
