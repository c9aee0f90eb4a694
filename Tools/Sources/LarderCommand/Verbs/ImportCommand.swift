import ArgumentParser
import Larder
import Synchronization

/// `larder import`.
struct ImportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Put lines of JSON into a store.",
    discussion: """
      Takes lines {"key":…,"value":…} as export and list print them, or, with --key, any objects, of which one field, a \
      string or an integer, becomes the key and the whole object the value. Makes the store where it is missing. Empty \
      lines are skipped; a line has at most 1 GiB.

      A bad line stops the import: its batch is not written, earlier ones stay. With --skip-bad it is left out. With \
      --concurrency several batches are on their way at once, and share commits.

        larder import json:users.json users.jsonl
        larder import json:users.json users.jsonl --key id --batch 10000
        gunzip -c users.jsonl.gz | larder import json:users.json
        larder import json:sessions.json sessions.jsonl --ttl 30m
        larder import lmdb:users users.jsonl --batch 100 --concurrency 32
      """)

  @OptionGroup var store: StoreArgument
  @Argument(help: "The file with the lines; - or nothing for standard input.") var file = ByteInput.standardInputPath
  @Option(name: .customLong("key"), help: ArgumentHelp("The field of each object that is its key.", valueName: "field"))
  var keyField: String?
  @Option(name: .customLong("batch"), help: ArgumentHelp("How many entries make one batch.", valueName: "n"))
  var batchSize = 1000
  @Option(help: ArgumentHelp("How many batches are on their way at once.", valueName: "n"))
  var concurrency = 1
  @Flag(help: "After each commit, print how many entries are durable so far, as a bare number on a line.")
  var acknowledge = false
  @Flag(name: .customLong("skip-bad"), help: "Leave out and report bad lines instead of stopping.")
  var skipsBadLines = false
  @OptionGroup var lifetime: LifetimeOption

  func validate() throws {
    guard batchSize >= 1 else { throw ValidationError("--batch must be at least 1") }
    guard concurrency >= 1 else { throw ValidationError("--concurrency must be at least 1") }
  }

  func run() async throws {
    var lines = InputLines(try ByteInput(file))
    let start = ContinuousClock.now
    var progress = ImportProgress(
      display: ProgressDisplay(total: lines.totalBytes, since: start), write: Diagnostics.writeLine)
    // Before the store, which would be made for nothing where there is no such file, or nothing good comes first.
    let first = try firstEntryLine(of: &lines, progress: &progress)
    // Batches that are on their way may be committed, too.
    let committed = Mutex(0)
    let interruption = Interruption {
      "At least \(EntryCount.text(committed.withLock { $0 })) are committed; import again to go on."
    }
    defer { withExtendedLifetime(interruption) {} }
    let entries = try await StoreSession.runOpened(
      store.target, createsIfMissing: true, expiration: lifetime.expiration
    ) { store, output in
      defer { progress.clear() }
      return try await copy(first, &lines, into: store, output: output, progress: &progress) { count in
        committed.withLock { $0 = count }
      }
    }
    Diagnostics.writeLine(progress.summary(entries: entries, elapsed: ContinuousClock.now - start))
  }

  /// Reads up to the first line that has an entry, over blank ones and, where that is asked for, bad ones.
  ///
  /// - Returns: The line, or `nil` where there is none.
  /// - Throws: ``CommandFailure`` for a bad line.
  private func firstEntryLine(
    of lines: inout InputLines, progress: inout ImportProgress
  ) throws -> LineSplitter.Line? {
    let parser = EntryParser(keyField: keyField)
    while let line = try lines.next() {
      do {
        if try parser.entry(of: line) != nil { return line }
      } catch let bad as BadLine {
        try meet(bad, line: line.number, committed: 0, progress: &progress)
      }
    }
    return nil
  }

  /// Imports line by line.
  ///
  /// - Parameter committed: Gets how many entries are committed, whenever more are.
  /// - Returns: How many entries were committed.
  private func copy(
    _ first: LineSplitter.Line?, _ lines: inout InputLines, into store: OpenedStore, output: ByteOutput,
    progress: inout ImportProgress, committed: (Int) -> Void
  ) async throws -> Int {
    let acknowledger = acknowledge ? try Acknowledger(store: store.present, output: output) : nil
    var importer = Importer(
      into: store, parser: EntryParser(keyField: keyField), batchSize: batchSize, concurrency: concurrency)
    var bytesShown = 0
    var next = first
    while let line = next {
      do {
        let isCommitted = try await importer.take(line)
        if isCommitted { committed(importer.committed) }
        if isCommitted, let acknowledger {
          progress.clear()
          try await acknowledger.acknowledge(importer.committed)
        }
        if isCommitted || bytesShown < lines.bytesRead {
          bytesShown = lines.bytesRead
          progress.update(bytesRead: bytesShown, entries: importer.taken)
        }
      } catch let bad as BadLine {
        if !skipsBadLines, try await importer.settle() { try await acknowledger?.acknowledge(importer.committed) }
        try meet(bad, line: line.number, committed: importer.committed, progress: &progress)
      }
      next = try lines.next()
    }
    if try await importer.finish() { try await acknowledger?.acknowledge(importer.committed) }
    return importer.committed
  }

  /// Leaves out a bad line where that is asked for.
  ///
  /// - Throws: ``CommandFailure`` otherwise.
  private func meet(_ bad: BadLine, line: Int, committed: Int, progress: inout ImportProgress) throws {
    guard skipsBadLines else { throw failure(bad, line: line, committed: committed) }
    progress.skip(bad, line: line)
  }

  private func failure(_ bad: BadLine, line: Int, committed: Int) -> CommandFailure {
    CommandFailure(
      .badData, "line \(line): \(bad.reason)",
      advice: "Imported by the batches before it: \(EntryCount.text(committed)). Mend the line, or give --skip-bad.")
  }
}
