import ExampleSupport
import Foundation
import NIOCore

/// The figures of the demonstration so far.
struct Summary {
  private(set) var requestCount = 0
  private(set) var outcomes: [Outcome: Int] = [:]

  /// The steps in which something was not as expected, with the reason.
  private(set) var failures: [String] = []

  /// The number of requests that the server itself did not answer with success, but the proxy did.
  private(set) var rescueCount = 0

  /// The sums over the requests that were also made without the proxy.
  private(set) var duration = Duration.zero
  private(set) var durationWithout = Duration.zero
  private(set) var bytesWithout = 0

  /// The number of requests for which the proxy may ask the server.
  private(set) var allowedRequests = 0

  /// Adds the results of a step, and checks them.
  ///
  /// - Parameters:
  ///   - step: The step.
  ///   - exchanges: The requests to the proxy.
  ///   - direct: The same requests without the proxy, or `nil` for those that failed.
  mutating func add(_ step: Step, _ exchanges: [Exchange], direct: [Exchange?]) {
    requestCount += exchanges.count
    allowedRequests += step.expected.count { $0 != .reused && $0 != .collapsed }
    for outcome in exchanges.compactMap(\.outcome) { outcomes[outcome, default: 0] += 1 }
    let (found, expected) = (exchanges.map { $0.outcome?.rawValue ?? "no cache" }, step.expected.map(\.rawValue))
    if found.sorted() != expected.sorted() {
      failures.append("\(step.title): \(Set(found).sorted()) instead of \(Set(expected).sorted())")
    }
    for exchange in exchanges where exchange.status != step.status {
      failures.append("\(step.title): status \(exchange.status) instead of \(step.status)")
    }
    for (exchange, direct) in zip(exchanges, direct) {
      guard let direct, direct.status == step.status else {
        rescueCount += 1
        continue
      }
      if direct.body != exchange.body { failures.append("\(step.title): another body than the server's") }
      duration += exchange.duration
      durationWithout += direct.duration
      bytesWithout += direct.body.readableBytes
    }
  }

  /// Returns whether everything was as expected, and the cache was of use.
  ///
  /// The server may have got at most one request for each that the cache did not answer alone. The time that was saved is
  /// not checked, because a busy machine changes it.
  func holds(_ load: DemoOrigin.Load) -> Bool {
    failures.isEmpty && rescueCount > 0 && load.bytes < bytesWithout && load.requests <= allowedRequests
  }

  /// Returns the bytes and the time that the cache has saved so far.
  func saved(_ load: DemoOrigin.Load) -> String {
    "\(TextFormat.bytes(Int64(bytesWithout - load.bytes))), \(Self.seconds(durationWithout - duration))"
  }

  private static func seconds(_ duration: Duration) -> String {
    duration.formatted(.units(allowed: [.seconds], width: .narrow, fractionalPart: .show(length: 1)))
  }

  /// Returns three sentences about the figures.
  ///
  /// - Parameter load: The load that the proxy has put on the server.
  func conclusion(_ load: DemoOrigin.Load) -> String {
    func count(_ outcome: Outcome) -> String { "\(outcomes[outcome] ?? 0)" }
    let share = TextFormat.percent(1 - Double(load.bytes) / Double(max(1, bytesWithout)))
    let result =
      holds(load)
      ? "Every answer was as RFC 9111 allows it, and \(rescueCount) requests got an answer without the server."
      : "Not everything held: \((failures.isEmpty ? ["the server was asked too often"] : failures).joined(separator: "; "))."
    return """
      Of \(requestCount) requests, the cache answered \(count(.reused)) with fresh responses, \(count(.stale)) with \
      stale ones and \(count(.collapsed)) with the response to another request, and had \(count(.validated)) validated \
      and \(count(.completed)) completed by the server.
      The server received \(load.requests) requests from the proxy and sent \(TextFormat.bytes(Int64(load.bytes))) instead of \
      \(TextFormat.bytes(Int64(bytesWithout))), \(share) less, and the clients waited \
      \(Self.seconds(duration)) instead of \(Self.seconds(durationWithout)).
      \(result)
      """
  }
}
