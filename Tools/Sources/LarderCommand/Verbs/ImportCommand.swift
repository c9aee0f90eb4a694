import ArgumentParser
import Larder
import StoreAccess

/// `larder import`.
struct ImportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Import lines of JSON into a store.",
    discussion: """
      Reads lines {"key":...,"value":...}, as export and list print them. With --key, reads any objects: the named \
      field, a string or an integer, is the key, and the whole object is the value. A missing store is created. Empty \
      lines are skipped. A line can have at most 1 GiB.

      A bad line stops the import. Its batch is not written, earlier batches stay. With --skip-bad, bad lines are \
      skipped. With --concurrency, several batches are written at the same time, and share commits.

        larder import json:users.json users.jsonl
        larder import json:users.json users.jsonl --key id --batch 10000
        gunzip -c users.jsonl.gz | larder import json:users.json
        larder import json:sessions.json sessions.jsonl --ttl 30m
        larder import lmdb:users users.jsonl --batch 100 --concurrency 32
      """)

  @OptionGroup var store: StoreArgument
  @Argument(help: "The file with the lines, or - for standard input.") var file = ByteInput.standardInputPath
  @Option(name: .customLong("key"), help: ArgumentHelp("The field of each object that is its key.", valueName: "field"))
  var keyField: String?
  @Option(name: .customLong("batch"), help: ArgumentHelp("The number of entries in a batch.", valueName: "n"))
  var batchSize = 1000
  @Option(help: ArgumentHelp("The number of batches to write at the same time.", valueName: "n"))
  var concurrency = 1
  @Flag(help: "After each commit, print a line with the number of entries that are durable so far.")
  var acknowledge = false
  @Flag(name: .customLong("skip-bad"), help: "Skip and report bad lines instead of stopping.")
  var skipsBadLines = false
  @OptionGroup var ttl: TimeToLiveOption
  @OptionGroup var table: LayoutOption

  func validate() throws {
    guard batchSize >= 1 else { throw ValidationError("--batch must be at least 1") }
    guard concurrency >= 1 else { throw ValidationError("--concurrency must be at least 1") }
  }

  func run() async throws {
    var lines = InputLines(try ByteInput(file))
    let start = ContinuousClock.now
    var progress = ImportProgress(
      display: ProgressDisplay(total: lines.totalBytes, since: start), write: Diagnostics.writeLine)
    // Read before the store is opened, so that a missing file or a bad first line creates no store.
    let first = try firstEntryLine(of: &lines, progress: &progress)
    // Batches that are being written can be committed, too.
    let committed = Locked(0)
    let interruption = Interruption {
      "Committed at least \(EntryCount.text(committed.withLock { $0 })); import again to continue."
    }
    defer { withExtendedLifetime(interruption) {} }
    let entries = try await StoreSession.run(
      store.target(layout: table.layout), createsIfMissing: true, timeToLive: ttl.timeToLive
    ) { store, output in
      defer { progress.clear() }
      return try await copy(first, &lines, into: store, output: output, progress: &progress) { count in
        committed.withLock { $0 = count }
      }
    }
    Diagnostics.writeLine(progress.summary(entries: entries, elapsed: ContinuousClock.now - start))
  }

  /// Reads up to the first line with an entry.
  ///
  /// Blank lines and, with `--skip-bad`, bad lines are skipped.
  ///
  /// - Returns: The line, or `nil` if there isn't one.
  /// - Throws: ``CommandFailure`` for a bad line.
  private func firstEntryLine(
    of lines: inout InputLines, progress: inout ImportProgress
  ) throws -> LineSplitter.Line? {
    let parser = EntryParser(keyField: keyField)
    while let line = try lines.next() {
      do {
        if try parser.entry(of: line) != nil { return line }
      } catch let bad as BadLine {
        try handle(bad, line: line.number, committed: 0, progress: &progress)
      }
    }
    return nil
  }

  /// Imports the lines.
  ///
  /// - Parameter committed: Receives the number of committed entries after each commit.
  /// - Returns: The number of committed entries.
  private func copy(
    _ first: LineSplitter.Line?, _ lines: inout InputLines, into store: OpenedStore, output: ByteOutput,
    progress: inout ImportProgress, committed: (Int) -> Void
  ) async throws -> Int {
    let acknowledger = acknowledge ? try Acknowledger(store: store.present, output: output) : nil
    // A program that reads the acknowledgments may wait for one before it writes the next line.
    var importer = Importer(
      into: store, parser: EntryParser(keyField: keyField), batchSize: batchSize, concurrency: concurrency,
      waitsForCommits: acknowledge)
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
        try handle(bad, line: line.number, committed: importer.committed, progress: &progress)
      }
      next = try lines.next()
    }
    if try await importer.finish() { try await acknowledger?.acknowledge(importer.committed) }
    return importer.committed
  }

  /// Skips a bad line with `--skip-bad`.
  ///
  /// - Throws: ``CommandFailure`` without that option.
  private func handle(_ bad: BadLine, line: Int, committed: Int, progress: inout ImportProgress) throws {
    guard skipsBadLines else { throw failure(bad, line: line, committed: committed) }
    progress.skip(bad, line: line)
  }

  private func failure(_ bad: BadLine, line: Int, committed: Int) -> CommandFailure {
    CommandFailure(
      .badData, "line \(line): \(bad.reason)",
      advice: "Earlier batches imported \(EntryCount.text(committed)). Fix the line, or give --skip-bad.")
  }
}
