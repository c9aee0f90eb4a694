import Foundation
import Testing

@Suite struct ImportTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func lines(_ count: Int) -> String {
    (0..<count).map { "{\"key\":\"\($0)\",\"value\":\($0)}\n" }.joined()
  }

  @Test(arguments: StoreKind.allCases) func `lines come from a file or standard input`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    let text =
      "{\"key\":\"a\",\"value\":1}\r\n\n \r\n{\"keyBytes\":\"80c0\",\"value\":null}\n{\"value\":[],\"key\":\"b\"}"
    let path = try folder.write(text, to: "lines")
    let expected = "{\"key\":\"a\",\"value\":1}\n{\"key\":\"b\",\"value\":[]}\n{\"keyBytes\":\"80c0\",\"value\":null}\n"
    for arguments in [[path], ["-"], []] {
      let run = try await ToolRun.run(Tool.path, ["import", store] + arguments, input: text)
      #expect(run.status == 0)
      #expect(run.output == "")
      #expect(run.errors.hasPrefix("imported 3 entries in "))
      #expect(try await Tool.larder("export", store) == .done(expected))
      #expect(try await Tool.larder("clear", store) == .done())
    }
  }

  @Test(arguments: StoreKind.allCases) func `a byte order mark before the first line is ignored`(kind: StoreKind)
    async throws
  {
    let store = kind.url(in: folder)
    let line = "{\"key\":\"a\",\"value\":1}\n"
    #expect(try await Tool.larder("import", store, input: "\u{FEFF}" + line).status == 0)
    #expect(try await Tool.larder("export", store) == .done(line))
    #expect(try await Tool.larder("import", store, input: line + "\u{FEFF}" + line).failed(65, "line 2"))
  }

  @Test(arguments: StoreKind.allCases) func `a field is the key`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    let text = #"{"id":7,"name":"x"}"# + "\n" + #"{"id":"seven","n":1.5}"# + "\n"
    #expect(try await Tool.larder("import", store, "--key", "id", input: text).status == 0)
    #expect(try await Tool.larder("get", store, "7") == .done("{\"id\":7,\"name\":\"x\"}\n"))
    #expect(try await Tool.larder("get", store, "seven") == .done("{\"id\":\"seven\",\"n\":1.5}\n"))
    #expect(
      try await Tool.larder("import", store, "--key", "nope", input: text).failed(65, "line 1: it has no field 'nope'"))
  }

  @Test(arguments: StoreKind.allCases) func `every export is imported`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    let lines =
      (0..<1000).map { "{\"key\":\"k\($0)\",\"value\":{\"n\":\($0),\"t\":\"é\\n\"}}\n" }.sorted().joined()
      + "{\"keyBytes\":\"80\",\"value\":null}\n"
    #expect(try await Tool.larder("import", store, input: lines).status == 0)
    #expect(try await Tool.shell("larder export \"$1\" | larder import \"$2\"", store, "\(store).copy").status == 0)
    #expect(try await Tool.larder("export", "\(store).copy") == .done(lines))
  }

  @Test(arguments: StoreKind.allCases) func `a bad line stops it and its batch is not written`(kind: StoreKind)
    async throws
  {
    let store = kind.url(in: folder)
    let text = lines(25) + "{\"key\":\"bad\"}\n" + lines(50)
    let run = try await Tool.larder("import", store, "--batch", "10", input: text)
    #expect(run.failed(65, "line 26: it has no value. Earlier batches imported 20 entries. "))
    #expect(try await Tool.larder("count", store) == .done("20\n"))
    #expect(try await Tool.larder("get", store, "20").status == 1)
    #expect(try await Tool.larder("verify", store).status == 0)
  }

  @Test(arguments: StoreKind.allCases) func `a bad first line creates no store`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    #expect(try await Tool.larder("import", store, input: "\n \nnonsense\n" + lines(3)).failed(65, "line 3: "))
    #expect(try folder.names() == [])
    #expect(try await Tool.larder("import", store, "--key", "id", input: lines(3)).failed(65, "line 1: "))
    #expect(try folder.names() == [])
    #expect(try await Tool.larder("import", store, "--skip-bad", input: "nonsense\n" + lines(3)).status == 0)
    #expect(try await Tool.larder("count", store) == .done("3\n"))
  }

  @Test(arguments: StoreKind.allCases) func `bad lines are skipped on request`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    let text = "nonsense\n\n" + lines(5) + "[]\n{\"key\":\"\",\"value\":1}\n"
    let run = try await Tool.larder("import", store, "--skip-bad", "--batch", "2", input: text)
    #expect(run.status == 0)
    #expect(run.output == "")
    let errors = run.errors.split(separator: "\n")
    #expect(
      errors.dropLast() == [
        "larder: skipped line 1: it is not JSON: column 1: expected a value",
        "larder: skipped line 8: it is not a JSON object", "larder: skipped line 9: its key is empty",
      ])
    #expect(errors.last?.hasSuffix("skipped 3 bad lines") == true)
    #expect(try await Tool.larder("count", store) == .done("5\n"))
  }

  @Test(arguments: StoreKind.allCases) func `acknowledgements are bare numbers`(kind: StoreKind) async throws {
    let store = kind.url(in: folder)
    let run = try await Tool.larder("import", store, "--acknowledge", "--batch", "10", input: lines(25))
    #expect(run.status == 0)
    #expect(run.output == "10\n20\n25\n")
    #expect(
      try await Tool.larder("import", store, "--acknowledge", "--batch", "5", input: lines(10)).output == "5\n10\n")
    #expect(try await Tool.larder("import", store, "--acknowledge", input: "").output == "")
    #expect(try await Tool.larder("import", store, "--batch", "0", input: "").failed(64, "--batch must be at least 1"))
  }

  @Test(arguments: StoreKind.allCases) func `concurrent batches keep the order of the lines`(kind: StoreKind)
    async throws
  {
    let store = kind.url(in: folder)
    // Many batches write each of ten keys. The last line counts.
    let text = (0..<2000).map { "{\"key\":\"k\($0 % 10)\",\"value\":\($0)}\n" }.joined()
    let run = try await Tool.larder(
      "import", store, "--batch", "7", "--concurrency", "20", "--acknowledge", input: text)
    #expect(run.status == 0)
    // A number can stand for several batches.
    let numbers = run.output.split(separator: "\n").compactMap { Int($0) }
    #expect(numbers == Array(Set(numbers)).sorted() && numbers.last == 2000)
    #expect(numbers.dropLast().allSatisfy { $0.isMultiple(of: 7) } && numbers.count > 100)
    let expected = (0..<10).map { "{\"key\":\"k\($0)\",\"value\":\(1990 + $0)}\n" }.joined()
    #expect(try await Tool.larder("export", store) == .done(expected))
    #expect(
      try await Tool.larder("import", store, "--concurrency", "0", input: "")
        .failed(64, "--concurrency must be at least 1"))
  }

  @Test(arguments: StoreKind.allCases) func `a bad line stops it after the running batches`(kind: StoreKind)
    async throws
  {
    let store = kind.url(in: folder)
    let text = lines(25) + "{\"key\":\"bad\"}\n" + lines(50)
    let run = try await Tool.larder("import", store, "--batch", "2", "--concurrency", "50", input: text)
    #expect(run.failed(65, "line 26: it has no value. Earlier batches imported 24 entries. "))
    #expect(try await Tool.larder("count", store) == .done("24\n"))
  }

  @Test(arguments: [1, 50]) func `a value that cannot be stored is a bad line`(concurrency: Int) async throws {
    let store = StoreKind.lmdb.url(in: folder)
    let options = ["import", store, "--batch", "2", "--concurrency", "\(concurrency)"]
    let text = lines(5) + "{\"key\":\"bad\",\"value\":{\"a\":1,\"a\":2}}\n" + lines(50)
    let run = try await ToolRun.run(Tool.path, options, input: text)
    #expect(run.failed(65, "line 6: its value cannot be stored: the object contains this name twice."))
    #expect(try await Tool.larder("count", store) == .done("4\n"))
    let skipping = try await ToolRun.run(Tool.path, options + ["--skip-bad"], input: text)
    #expect(skipping.status == 0)
    #expect(skipping.errors.hasPrefix("larder: skipped line 6: its value cannot be stored: "))
    #expect(try await Tool.larder("count", store) == .done("50\n"))
  }

  @Test(arguments: StoreKind.allCases) func `an acknowledgement without a reader is a failure`(kind: StoreKind)
    async throws
  {
    let store = kind.url(in: folder)
    // More acknowledgements than a pipe holds.
    let path = try folder.write(lines(20_000), to: "lines")
    let run = try await Tool.shell(
      "{ larder import \"$1\" \"$2\" --acknowledge --batch 1; echo $? >&2; } | head -1", store, path)
    #expect(run.output == "1\n")
    #expect(run.errors.hasPrefix("larder: cannot write to standard output: "))
    #expect(run.errors.hasSuffix("\n74\n"))
    #expect(try await Tool.larder("verify", store).status == 0)
  }

  /// Ctrl-C prints the number of committed entries, and ends the tool.
  ///
  /// It does neither if the tool was started with the signal ignored, as a shell does for the background processes of a
  /// script.
  @Test(arguments: [false, true]) func `an interruption reports committed entries`(isIgnored: Bool) async throws {
    let store = StoreKind.json.url(in: folder)
    let errors = try folder.write("", to: "errors")
    let (input, output) = (Pipe(), Pipe())
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    let command = #"exec "$0" import "$1" --batch 1 --acknowledge"#
    process.arguments = ["-c", isIgnored ? "trap '' INT; \(command)" : command, Tool.path, store]
    process.standardInput = input
    process.standardOutput = output
    process.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: errors))
    try process.run()
    try input.fileHandleForWriting.write(contentsOf: Data(lines(2).utf8))
    // After that, the tool waits for more lines.
    var acknowledged = Data()
    while !acknowledged.contains(UInt8(ascii: "2")) {
      acknowledged += try #require(try output.fileHandleForReading.read(upToCount: 1), "the tool has ended")
    }
    process.interrupt()
    if isIgnored {
      try input.fileHandleForWriting.write(contentsOf: Data(lines(5).utf8))
      try input.fileHandleForWriting.close()
      process.waitUntilExit()
      #expect(process.terminationStatus == 0)
      #expect(try String(contentsOfFile: errors, encoding: .utf8).hasPrefix("imported 7 entries in "))
      #expect(try await Tool.larder("count", store) == .done("5\n"))
      return
    }
    process.waitUntilExit()
    #expect(process.terminationStatus == 130)
    #expect(
      try String(contentsOfFile: errors, encoding: .utf8)
        == "larder: interrupted. Committed at least 2 entries; import again to continue.\n")
    #expect(try await Tool.larder("count", store) == .done("2\n"))
  }
}
