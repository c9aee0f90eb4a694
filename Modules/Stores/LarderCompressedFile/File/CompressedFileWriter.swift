#if Compression
import Larder
import LarderFiles
import Synchronization

/// The writer of a `CompressedFileStore`'s file, which runs one operation after another on its own thread.
///
/// The base of a compaction is written on another thread, while this one continues.
actor CompressedFileWriter {
  private nonisolated let executor: DispatchQueueExecutor
  private nonisolated let compactionExecutor = DispatchQueueExecutor(label: "Larder.CompressedFileStore.compaction")
  nonisolated let information: StoreInformation
  nonisolated let contents: CompressedFileContents
  nonisolated let codecName: String
  private var file: CompressedFile

  /// The running compaction.
  private var compaction: Task<Void, any Error>?

  /// The number of uncopied bytes up to which writes are suspended for the rest of a compaction, and the maximum number
  /// of rounds to get there.
  private static let smallRest: Int64 = 1 << 20
  private static let maximumRounds = 8

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private init(executor: DispatchQueueExecutor, information: StoreInformation, file: CompressedFile) {
    self.executor = executor
    self.information = information
    self.file = file
    contents = file.contents
    codecName = file.codecName
  }

  /// Opens the file.
  ///
  /// - Throws: ``StoreError``.
  static func open(
    _ configuration: StoreFileConfiguration, cacheSize: Int, newCodecName: String
  ) async throws -> CompressedFileWriter {
    let executor = DispatchQueueExecutor(label: "Larder.CompressedFileStore")
    let file = try await executor.run {
      try CompressedFile.open(configuration, cacheSize: cacheSize, newCodecName: newCodecName)
    }
    let information = StoreInformation(
      name: configuration.name, durability: Durability(configuration.durability), sharing: .exclusive,
      access: configuration.access)
    return CompressedFileWriter(executor: executor, information: information, file: file)
  }

  /// Writes a batch, then makes it visible to readers.
  func apply(_ changes: [Change<ArraySlice<UInt8>>], format: CodecFormat) throws {
    try checkOpen(for: .apply)
    try Task.checkCancellation()
    try write(changes, format: format, during: .apply)
  }

  /// Reads lines, computes a batch, writes it, and makes it visible to readers, with no other write in between.
  ///
  /// - Parameters:
  ///   - keys: The keys to read.
  ///   - format: The format of the codec.
  ///   - body: A closure that receives the line of each key, or `nil`, and returns the batch and the result.
  func update<Result: Sendable>(
    _ keys: [StoreKey], format: CodecFormat,
    _ body: @Sendable ([ArraySlice<UInt8>?]) throws -> (changes: [Change<ArraySlice<UInt8>>], result: Result)
  ) throws -> Result {
    try checkOpen(for: .update)
    try Task.checkCancellation()
    guard let (index, reader) = contents.snapshot else { throw information.closedError(for: .update) }
    let lines = try reader.read(
      keys.map { ($0, index.find($0)) }, during: .update, isKept: true
    ) { _, line in
      line
    }
    let (changes, result) = try body(lines)
    try write(changes, format: format, during: .update)
    return result
  }

  private func write(
    _ changes: [Change<ArraySlice<UInt8>>], format: CodecFormat, during operation: StoreOperation
  ) throws {
    guard !changes.isEmpty else { return }
    try file.append(changes, format: format, during: operation)
    guard compaction == nil, file.isCompactionDue else { return }
    startCompaction()
  }

  func synchronize() throws {
    try checkOpen(for: .synchronize)
    guard information.access == .readWrite else { return }
    try file.synchronize()
  }

  func close() async throws {
    await contents.stopReading()
    await finishCompaction()
    // A failure only leaves the file larger.
    if !contents.isClosed, file.isCompactionCheap { _ = await startCompaction().result }
    // Another call may have closed the file during the wait.
    guard !contents.isClosed else { return }
    try file.close()
  }

  // MARK: Compaction

  func compact() async throws {
    try checkOpen(for: .compact)
    try information.checkWritable(for: .compact)
    await finishCompaction()
    try checkOpen(for: .compact)
    try await startCompaction().value
  }

  /// Waits until no compaction is running.
  private func finishCompaction() async {
    // The caller that started the compaction receives its error.
    while let compaction { _ = await compaction.result }
  }

  @discardableResult
  private func startCompaction() -> Task<Void, any Error> {
    let task = Task {
      defer { compaction = nil }
      do {
        try await runCompaction()
      } catch {
        // An automatic compaction has no caller that receives the error. Nothing is lost, and a later write tries
        // again.
        file.postponeCompaction()
        throw error
      }
    }
    compaction = task
    return task
  }

  private func runCompaction() async throws {
    guard var running = try file.beginCompaction() else { return }
    let contents = contents
    do {
      running = try await inBackground(running) { try $0.writeBase(during: .compact) { contents.isAbandoned } }
      for _ in 0..<CompressedFileWriter.maximumRounds {
        let (source, end) = file.uncopied
        guard let source, end - running.copiedEnd > CompressedFileWriter.smallRest else { break }
        running = try await inBackground(running) { try $0.copy(of: source, upTo: end, during: .compact) }
      }
      try file.configuration.reportingFileErrors(during: .compact, message: "the file could not be replaced") {
        try file.finishCompaction(&running)
      }
    } catch {
      file.abandonCompaction(running)
      throw error
    }
  }

  /// Runs a step of a compaction on its own thread, and makes its output durable.
  ///
  /// Otherwise all of it would have to be made durable at the end, when writes are suspended.
  private func inBackground(
    _ compaction: FileCompaction, _ body: @escaping @Sendable (inout FileCompaction) throws -> Void
  ) async throws -> FileCompaction {
    let configuration = file.configuration
    return try await compactionExecutor.run {
      var compaction = compaction
      try configuration.reportingFileErrors(during: .compact, message: "the new file could not be written") {
        try body(&compaction)
        try compaction.replacement.synchronize()
      }
      return compaction
    }
  }

  // MARK: Maintenance

  func statistics() throws -> StoreStatistics {
    try checkOpen(for: .statistics)
    return file.statistics()
  }

  func backup(to path: String, compacting isCompacted: Bool) throws {
    try checkOpen(for: .backup)
    try file.backup(to: path, compacting: isCompacted)
  }

  /// Reads and checks the whole file.
  ///
  /// - Parameter check: A closure that returns the problem with the line of a key, or `nil`.
  func verify(_ check: @Sendable (StoreKey, ArraySlice<UInt8>) -> String?) throws -> VerificationReport {
    try checkOpen(for: .verify)
    guard let (index, reader) = contents.snapshot else { throw information.closedError(for: .verify) }
    var report = VerificationReport(entryCount: index.entries.count)
    do {
      let found = try file.rescan()
      report.findings = try file.configuration.reportingZlibErrors(during: .verify) {
        try file.findings(of: found, comparedWith: index, reader, check)
      }
    } catch let error as StoreError where error.code != .ioFailed && error.code != .notPermitted {
      report.findings.append(VerificationReport.Finding(key: error.key, place: file.path, message: error.message))
    }
    return report
  }

  private func checkOpen(for operation: StoreOperation) throws {
    guard !contents.isClosing else { throw information.closedError(for: operation) }
  }
}

/// The content of a `CompressedFileStore` as its readers see it: all batches whose writes have returned, and no others.
///
/// Only the store's ``CompressedFileWriter`` changes it.
final class CompressedFileContents: Sendable {
  private struct State {
    var index = CompressedFileIndex()
    /// The file that the index describes, or `nil` before it is read and after it is closed.
    var source: BlockReader.Source?
    var isClosed = false
  }

  let blocks: BlockReader
  private let store: String
  private let state = Mutex(State())

  /// The running reads, including the decoding of their values.
  private let reads = RunningOperations()

  private let abandonment = Atomic(false)

  /// Creates empty contents.
  ///
  /// - Parameters:
  ///   - store: The name of the store, for errors.
  ///   - cacheSize: The maximum size of the block cache, in bytes.
  init(store: String, cacheSize: Int) {
    self.store = store
    blocks = BlockReader(cacheSize: cacheSize)
  }

  /// Replaces the index and the file.
  func replace(_ index: CompressedFileIndex, of file: any OpenFile, in format: FileFormat) {
    let old = state.withLock { state in
      let old = state
      state.index = index
      state.source = BlockReader.Source(file: file, generation: (old.source?.generation ?? 0) + 1, format: format)
      return old
    }
    // Released outside the lock.
    blocks.keepOnly((old.source?.generation ?? 0) + 1)
  }

  /// An immutable copy of the index with a reader of its lines, or `nil` if the store is closed.
  var snapshot: (index: CompressedFileIndex, lines: LineReader)? {
    state.withLock { state in
      state.source.map { (state.index, LineReader(blocks: blocks, source: $0, store: store)) }
    }
  }

  /// The total size of the lines of all entries, in bytes.
  var liveTextSize: Int64 { state.withLock { $0.index.liveTextSize } }

  /// Whether the store is closed.
  var isClosed: Bool {
    state.withLock { $0.isClosed }
  }

  /// Whether closing has begun, so that all other operations are refused.
  var isClosing: Bool { reads.isClosing }

  /// Whether the store has been deallocated, so that background work is useless.
  var isAbandoned: Bool { abandonment.load(ordering: .relaxed) }

  /// Records that the store has been deallocated.
  func abandon() {
    abandonment.store(true, ordering: .relaxed)
  }

  /// Looks into the index, and passes the result to a closure.
  ///
  /// Closing waits for both.
  ///
  /// - Returns: The result of the closure, or `nil` if closing has begun.
  func read<Found: Sendable, Result>(
    _ body: (CompressedFileIndex) -> Found, then use: (Found, LineReader) throws -> Result
  ) rethrows -> Result? {
    guard reads.begin() else { return nil }
    defer { reads.end() }
    let found = state.withLock { state in state.source.map { (body(state.index), $0) } }
    guard let (result, source) = found else { return nil }
    return try use(result, LineReader(blocks: blocks, source: source, store: store))
  }

  /// Refuses further reads, and waits for the running ones.
  func stopReading() async {
    await reads.close()
  }

  /// Shows a batch to readers.
  func apply(_ changes: [Change<EntryLocation>]) {
    state.withLock { state in
      for change in changes { state.index.apply(change) }
    }
  }

  /// Removes the index and the file.
  func close() {
    let old = state.withLock { state in
      let old = state
      state = State(isClosed: true)
      return old
    }
    blocks.keepOnly((old.source?.generation ?? 0) + 1)
  }
}

extension CompressedFileWriter: UntypedStore {
  nonisolated func typed<Value: Sendable>(codec: some Codec<Value>) throws -> AnyDataStore<Value> {
    AnyDataStore(try CompressedFileStore(self, codec: codec))
  }
}
#endif
