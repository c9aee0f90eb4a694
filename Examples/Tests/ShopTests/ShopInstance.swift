import ExampleSupport
import Foundation
import Larder

/// An instance of the shop, in a process of its own, which is started again on the same port.
final class ShopInstance: Sendable {
  private struct State {
    var process: ExampleProcess?
    var port = 0
    var startCount = 0
  }

  /// The last lines of an instance that ends as it should: the worker first, and the store after all that uses it.
  private static let lastLines: [Substring] = [
    "ended: mails", "ended: sessions", "ended: products", "ended: store", "closed: true",
  ]

  let folder: String

  /// The environment, such as `STORES_SHOP_URL`.
  let variables: [String: String]

  private let state = Locked(State())

  init(folder: String, variables: [String: String]) throws {
    self.folder = folder
    self.variables = variables
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  }

  /// The address of the instance.
  var address: String { "127.0.0.1:\(state.withLock { $0.port })" }

  /// The running process, or the last one.
  private var process: ExampleProcess {
    get throws {
      guard let process = state.withLock({ $0.process }) else { throw ShopFailure("the instance was never started") }
      return process
    }
  }

  /// Starts the instance, and waits until it listens.
  func start() async throws {
    let (port, number) = state.withLock { state in
      state.startCount += 1
      return (state.port, state.startCount)
    }
    let process = try ExampleProcess(
      "Shop", ["--port", "\(port)"], environment: variables, output: "\(folder)/output-\(number)")
    state.withLock { $0.process = process }
    let line = try await process.line { $0.hasPrefix("listening on ") }
    state.withLock { $0.port = line.split(separator: ":").last.flatMap { Int($0) } ?? 0 }
  }

  /// Sends a signal to the instance.
  func signal(_ number: Int32) throws { try process.signal(number) }

  /// Kills the instance, and starts it again.
  func restartAfterKill() async throws {
    try await process.end()
    try await start()
  }

  /// Ends the instance as an operator does, and checks that it has closed all in order.
  func end() async throws {
    let process = try process
    process.signal(SIGTERM)
    let status = try await process.waitForEnd()
    let lines = try process.lines
    guard status == 0, lines.suffix(Self.lastLines.count) == Self.lastLines[...] else {
      throw ShopFailure("status \(status.map(String.init) ?? "of a signal") at SIGTERM: \(lines)")
    }
  }
}

/// A broken promise of the shop.
struct ShopFailure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}
