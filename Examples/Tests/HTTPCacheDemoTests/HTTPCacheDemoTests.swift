import Foundation
import NIOCore
import Testing

@testable import HTTPCacheDemo

/// Tests of the demonstration of `make http-cache`.
@Suite("The demonstration of the HTTP cache")
struct HTTPCacheDemoTests {
  /// Runs the program, and returns its exit code and its output.
  private func run() async throws -> (status: Int32, text: String) {
    let process = Process()
    process.executableURL = Bundle.main.bundleURL.appending(path: "HTTPCacheDemo")
    let pipe = Pipe()
    process.standardOutput = pipe
    let (end, continuation) = AsyncStream<Never>.makeStream()
    process.terminationHandler = { _ in continuation.finish() }
    try process.run()
    // It prints less than a pipe holds.
    for await _ in end {}
    let text = String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    return (process.terminationStatus, text)
  }

  @Test func `The program shows every kind of answer, and everything is as expected`() async throws {
    // It shows answers in time, and a busy machine delays them.
    var (status, text) = try await run()
    for _ in 0..<2 where status != 0 { (status, text) = try await run() }
    #expect(status == 0, "\(text)")
    for outcome in Outcome.allCases { #expect(text.contains("  \(outcome.rawValue)  ") || outcome == .collapsed) }
    #expect(text.contains("7 x collapsed") && text.contains("1 x stored"), "\(text)")
    #expect(
      text.contains("Every answer was as RFC 9111 allows it, and 3 requests got an answer without the server."),
      "\(text)")
    #expect(text.split(separator: "\n").suffix(3).allSatisfy { $0.hasSuffix(".") })
  }

  private func exchange(_ status: String, code: Int = 200, body: String = "a") -> Exchange {
    Exchange(status: code, body: ByteBuffer(string: body), duration: .zero, cacheStatus: "Larder; \(status)")
  }

  @Test func `A wrong answer, status or body is found`() {
    let step = Step(title: "a page", path: "/", expected: [.reused])
    let server = exchange("")
    var load = DemoOrigin.Load()
    func holds(_ exchange: Exchange) -> Bool {
      var summary = Summary()
      summary.add(step, [exchange], direct: [server])
      // A request that only the proxy answered.
      summary.add(step, [self.exchange("hit; ttl=5")], direct: [nil])
      #expect(summary.conclusion(load).contains(summary.holds(load) ? "Every answer" : "Not everything held"))
      return summary.holds(load)
    }
    #expect(holds(exchange("hit; ttl=5")))
    #expect(!holds(exchange("hit; ttl=-5")))
    #expect(!holds(exchange("fwd=uri-miss; fwd-status=200; stored")))
    #expect(!holds(exchange("hit; ttl=5", code: 500)))
    #expect(!holds(exchange("hit; ttl=5", body: "b")))
    load.requests = 1
    #expect(!holds(exchange("hit; ttl=5")))
    load = DemoOrigin.Load(bytes: 9)
    #expect(!holds(exchange("hit; ttl=5")))
  }

  @Test(
    "Cache-Status says how the cache answered",
    arguments: [
      ("hit; ttl=42", Outcome.reused), ("hit; ttl=-10", .stale), ("fwd=uri-miss; fwd-status=200; stored", .stored),
      ("fwd=stale; fwd-status=304; ttl=1", .validated), ("fwd=uri-miss; collapsed", .collapsed),
      ("fwd=stale; fwd-status=503; ttl=-4", .stale), ("fwd=partial; fwd-status=206; stored", .completed),
      ("fwd=uri-miss; fwd-status=200; detail=not-stored-private", .passedOn),
    ])
  func outcomes(status: String, outcome: Outcome) {
    #expect(exchange(status).outcome == outcome)
  }
}
