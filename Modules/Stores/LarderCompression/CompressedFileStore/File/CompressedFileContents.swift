#if Compression
import Larder
import LarderFiles
import Synchronization

/// What a `CompressedFileStore` holds, as its readers see it: every batch whose write has returned, and no other.
///
/// Only the store's ``CompressedFileWriter`` changes it.
final class CompressedFileContents: Sendable {
  private struct State {
    var index = CompressedFileIndex()
    /// The file that the index is one of; `nil` before it was read and once it was closed.
    var source: BlockReader.Source?
    var isClosed = false
  }

  let blocks: BlockReader
  private let store: String
  private let state = Mutex(State())

  /// The reads, until their values are decoded.
  private let reads = RunningOperations()

  private let abandonment = Atomic(false)

  /// Shows nothing at first.
  ///
  /// - Parameters:
  ///   - store: The name of the store, in errors.
  ///   - cacheSize: The most bytes that the texts of blocks may take that are kept.
  init(store: String, cacheSize: Int) {
    self.store = store
    blocks = BlockReader(cacheSize: cacheSize)
  }

  /// Shows a file, in place of any other.
  func replace(_ index: CompressedFileIndex, of file: any OpenFile, in format: FileFormat) {
    let old = state.withLock { state in
      let old = state
      state.index = index
      state.source = BlockReader.Source(file: file, generation: (old.source?.generation ?? 0) + 1, format: format)
      return old
    }
    // Released here, outside the lock.
    blocks.keepOnly((old.source?.generation ?? 0) + 1)
  }

  /// The index as a copy that stays as it is, and what reads the lines that it speaks of; `nil` where the store is
  /// closed.
  var snapshot: (index: CompressedFileIndex, lines: LineReader)? {
    state.withLock { state in
      state.source.map { (state.index, LineReader(blocks: blocks, source: $0, store: store)) }
    }
  }

  /// The bytes of the lines of all entries.
  var liveTextSize: Int64 { state.withLock { $0.index.liveTextSize } }

  /// Whether the store was closed.
  var isClosed: Bool {
    state.withLock { $0.isClosed }
  }

  /// Whether closing has begun, so that everything else is refused.
  var isClosing: Bool { reads.isClosing }

  /// Whether nobody has the store any more, so that work in the background is of no use.
  var isAbandoned: Bool { abandonment.load(ordering: .relaxed) }

  /// Takes note that nobody has the store any more.
  func abandon() {
    abandonment.store(true, ordering: .relaxed)
  }

  /// Looks into the index, and does something with what was found, for which closing waits; `nil` once closing has
  /// begun.
  func read<Found: Sendable, Result>(
    _ body: (CompressedFileIndex) -> Found, then use: (Found, LineReader) throws -> Result
  ) rethrows -> Result? {
    guard reads.begin() else { return nil }
    defer { reads.end() }
    let found = state.withLock { state in state.source.map { (body(state.index), $0) } }
    guard let (result, source) = found else { return nil }
    return try use(result, LineReader(blocks: blocks, source: source, store: store))
  }

  /// Lets nobody read any more, and waits for those who are still decoding.
  func stopReading() async {
    await reads.close()
  }

  /// Shows a batch to the readers.
  func apply(_ changes: [Change<EntryPlace>]) {
    state.withLock { state in
      for change in changes { state.index.apply(change) }
    }
  }

  /// Shows nothing any more.
  func close() {
    let old = state.withLock { state in
      let old = state
      state = State(isClosed: true)
      return old
    }
    blocks.keepOnly((old.source?.generation ?? 0) + 1)
  }
}
#endif
