import ArgumentParser
import ExampleSupport
import Foundation
import Testing

@testable import EventUploader

@Suite("The program")
struct ProgramTests {
  @Test("It kills its clients, loses nothing, and says so")
  func losesNothing() async throws {
    try await TemporaryFolder.with { folder in
      let output = "\(folder)/output"
      try Data().write(to: URL(fileURLWithPath: output))
      let process = Process()
      process.executableURL = Self.program
      process.arguments = ["--events", "600", "--crashes", "2", "--failure-rate", "0.3", "--seed", "3"]
      let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: output))
      process.standardOutput = handle
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        process.terminationHandler = { _ in continuation.resume() }
        do {
          try process.run()
        } catch {
          continuation.resume(throwing: error)
        }
      }
      try handle.close()
      let text = try String(contentsOfFile: output, encoding: .utf8)
      #expect(process.terminationStatus == 0, "\(text)")
      #expect(text.components(separatedBy: "Killed the client").count == 3)
      #expect(text.contains("Every event that was recorded has been received, in order within each batch."))
    }
  }

  @Test(
    "What makes no sense is refused",
    arguments: [["--events", "-1"], ["--failure-rate", "1"], ["--crashes", "-1"], ["client"]])
  func refuses(arguments: [String]) {
    #expect(throws: (any Error).self) { try EventUploaderCommand.parseAsRoot(arguments) }
  }

  /// The program as it was built, in the folder of the tests.
  private static var program: URL {
    #if canImport(Darwin)
    let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") } ?? .main
    return bundle.bundleURL.deletingLastPathComponent().appending(path: "EventUploader")
    #else
    return Bundle.main.bundleURL.appending(path: "EventUploader")
    #endif
  }
}
