import ArgumentParser
import ExampleSupport
import Foundation
import NIOHTTP1

@main
struct HTTPCacheDemoCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "HTTPCacheDemo",
    abstract: "Shows how an HTTP cache answers requests.",
    discussion: """
      The program starts a slow server, the example CachingProxy in front of it, and a client. It sends each request \
      through the proxy, and then to the server itself to compare. It prints a line for each step: the answer, the \
      time with and without the proxy, and Cache-Status, which says why. It ends after some 20 seconds, with 1 if \
      something was not as expected.
      """)

  func run() async throws {
    let summary = try await TemporaryFolder.with { folder in
      let origin = try await DemoOrigin()
      let proxy = try ProxyProcess(origin: origin.url, store: "lmdb:\(folder)/responses")
      defer { proxy.stop() }
      return try await Self.run(Step.all, proxy: DemoClient(url: proxy.url), origin)
    }
    guard summary else { throw ExitCode.failure }
  }

  /// Runs steps, and prints their lines and the conclusion.
  ///
  /// - Returns: A Boolean value that indicates whether everything was as expected.
  static func run(_ steps: [Step], proxy: DemoClient, _ origin: DemoOrigin) async throws -> Bool {
    let server = DemoClient(url: origin.url)
    var summary = Summary()
    print(line("Request", "Answer", "Time", "Without", "Saved so far", "Cache-Status"))
    for step in steps {
      switch step.event {
      case .wait(let duration):
        print("(\(duration) later)")
        try await Task.sleep(for: duration)
      case .failure:
        print("(the server answers 503 to everything)")
        origin.fail()
      case .end:
        print("(the server is stopped)")
        await origin.stop()
      case nil: break
      }
      let exchanges = try await send(step, to: proxy).map { try $0.get() }
      // A request that changes something is not repeated.
      let direct = step.method == .GET ? await send(step, to: server).map { try? $0.get() } : []
      summary.add(step, exchanges, direct: direct)
      show(step, exchanges, direct, saved: summary.saved(origin.load))
    }
    print("\n\(summary.conclusion(origin.load))")
    return summary.holds(origin.load)
  }

  /// Sends the requests of a step at the same time.
  private static func send(_ step: Step, to client: DemoClient) async -> [Result<Exchange, any Error>] {
    await withTaskGroup { group in
      for _ in 0..<step.count {
        group.addTask {
          do {
            return Result<Exchange, any Error>.success(try await client.send(step.method, step.path, step.fields))
          } catch {
            return .failure(error)
          }
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
  }

  /// Prints a line for the requests of a step that were answered in the same way.
  private static func show(_ step: Step, _ exchanges: [Exchange], _ direct: [Exchange?], saved: String) {
    let slowestDirect = direct.compactMap { $0?.status == step.status ? $0?.duration : nil }.max()
    let without = direct.isEmpty ? "" : slowestDirect.map(TextFormat.duration) ?? "fails"
    let answers = Dictionary(grouping: exchanges) { $0.outcome?.rawValue ?? "no cache" }
    for (answer, exchanges) in answers.sorted(by: { $0.value.count < $1.value.count }) {
      let count = step.count > 1 ? "\(exchanges.count) x " : ""
      let slowest = exchanges.map(\.duration).max().map(TextFormat.duration) ?? ""
      print(line(step.title, count + answer, slowest, without, saved, exchanges[0].cacheStatus ?? ""))
    }
  }

  private static func line(_ cells: String...) -> String {
    let widths = [30, 14, 9, 9, 16]
    let padded = zip(cells, widths).enumerated().map { index, cell in
      let space = String(repeating: " ", count: max(0, cell.1 - cell.0.count))
      return index < 2 ? cell.0 + space : space + cell.0
    }
    return (padded + [cells[5]]).joined(separator: "  ")
  }
}
