import Foundation
import Larder

/// An instance of the shop, in a process of its own, which is started again on the same port.
final class ShopInstance: Sendable {
  private struct State {
    var process: Process?
    var port = 0
    var output = ""
    var startCount = 0
  }

  let folder: String
  let arguments: [String]
  private let state = Locked(State())

  init(folder: String, arguments: [String]) throws {
    self.folder = folder
    self.arguments = arguments
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  }

  /// The address of the instance.
  var address: String { "127.0.0.1:\(state.withLock { $0.port })" }

  /// The path of the built program, in the folder of the tests.
  private static var program: URL {
    #if canImport(Darwin)
    let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") } ?? .main
    return bundle.bundleURL.deletingLastPathComponent().appending(path: "Shop")
    #else
    return Bundle.main.bundleURL.appending(path: "Shop")
    #endif
  }

  /// Starts the instance, and waits until it listens.
  func start() async throws {
    let (port, number) = state.withLock { state in
      state.startCount += 1
      return (state.port, state.startCount)
    }
    let output = "\(folder)/output-\(number)"
    try Data().write(to: URL(filePath: output))
    let process = Process()
    process.executableURL = Self.program
    process.arguments = ["--port", "\(port)", "--limit", "1000000"] + arguments
    let handle = try FileHandle(forWritingTo: URL(filePath: output))
    (process.standardOutput, process.standardError) = (handle, handle)
    try process.run()
    try handle.close()
    state.withLock { ($0.process, $0.output) = (process, output) }
    let end = ContinuousClock.now + .seconds(60)
    while ContinuousClock.now < end, process.isRunning {
      if let line = try lines.first(where: { $0.hasPrefix("listening on ") }) {
        state.withLock { $0.port = line.split(separator: ":").last.flatMap { Int($0) } ?? 0 }
        return
      }
      try await Task.sleep(for: .milliseconds(5))
    }
    throw ShopFailure("the instance did not start: \(try lines)")
  }

  /// The lines that the running instance has printed.
  var lines: [Substring] {
    get throws { try String(contentsOfFile: state.withLock { $0.output }, encoding: .utf8).split(separator: "\n") }
  }

  /// Sends a signal to the instance.
  func signal(_ number: Int32) {
    if let process = state.withLock({ $0.process }), process.isRunning { kill(process.processIdentifier, number) }
  }

  /// Waits until the instance has ended, and returns its status, or `nil` if it was killed.
  func waitForEnd() async throws -> Int32? {
    guard let process = state.withLock({ $0.process }) else { return nil }
    let end = ContinuousClock.now + .seconds(60)
    while process.isRunning {
      guard ContinuousClock.now < end else { throw ShopFailure("the instance did not end: \(try lines)") }
      try await Task.sleep(for: .milliseconds(5))
    }
    return process.terminationReason == .exit ? process.terminationStatus : nil
  }

  /// Ends the instance as an operator does, and checks that it has closed its store.
  func end() async throws {
    signal(SIGTERM)
    let status = try await waitForEnd()
    guard status == 0, try lines.last == "closed: true" else {
      throw ShopFailure("status \(status.map(String.init) ?? "of a signal") at SIGTERM: \(try lines)")
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
