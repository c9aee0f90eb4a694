import ArgumentParser
import ExampleSupport
import Foundation
import Testing

@testable import EventUploader

@Suite("The program")
struct ProgramTests {
  @Test func `The program kills its clients, loses no event, and reports this`() async throws {
    try await TemporaryFolder.with { folder in
      let (status, text) = try await Program.run(in: folder, events: 600, ["--crashes", "2"])
      #expect(status == 0, "\(text)")
      #expect(text.components(separatedBy: "Killed the client").count == 3)
      #expect(text.contains(Program.success))
    }
  }

  @Test(.timeLimit(.minutes(5)))
  func `A client ends when its parent process is gone, even if it has nothing to write`() async throws {
    try await TemporaryFolder.with { folder in
      let process = Process()
      process.executableURL = Program.url
      // No server listens there, so the event is never sent.
      process.arguments = [
        "client", "--outbox", "\(folder)/outbox", "--endpoint", "http://127.0.0.1:1/", "--events", "1", "--session",
        "s",
      ]
      let pipe = Pipe()
      process.standardOutput = pipe
      let end = process.end
      try process.run()
      #expect(pipe.fileHandleForReading.availableData == Data("s/0/0\n".utf8))
      try pipe.fileHandleForReading.close()
      for await _ in end {}
      #expect(process.terminationStatus == EXIT_FAILURE)
    }
  }

  @Test(
    "Invalid arguments are refused",
    arguments: [["--events", "-1"], ["--failure-rate", "1"], ["--crashes", "-1"], ["client"]])
  func refuses(arguments: [String]) {
    #expect(throws: (any Error).self) { try EventUploaderCommand.parseAsRoot(arguments) }
  }
}
