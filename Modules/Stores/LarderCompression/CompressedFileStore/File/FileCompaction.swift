#if Compression
import Larder
import LarderFiles

/// Writes a compressed file anew: every entry once, in key order, and behind them what is appended meanwhile.
///
/// The base can be written while the store goes on; see ``CompressedFile/beginCompaction()``.
struct FileCompaction: Sendable {
  /// About how many bytes of lines are put into key order at a time: what they come to in memory.
  private static let sliceSize = 32 << 20

  /// The end of what was appended that has been copied, in the old file.
  private(set) var copiedEnd: Int64

  /// What the old file had when this began.
  let oldLayout: CompressedFile.Layout

  /// The blocks and the bytes of text of the head and the base.
  private(set) var blockCount = 1
  private(set) var textSize: Int64 = 0

  private(set) var baseEnd: Int64 = 0

  /// The new file.
  var replacement: FileReplacement

  private let oldIndex: CompressedFileIndex
  private let lines: LineReader
  private let composer: BlockComposer
  private let codecName: String

  private var newIndex = CompressedFileIndex()

  init(
    index: CompressedFileIndex, lines: LineReader, composer: BlockComposer, replacement: FileReplacement,
    codecName: String, layout: CompressedFile.Layout
  ) {
    oldIndex = index
    self.lines = lines
    self.composer = composer
    self.replacement = replacement
    self.codecName = codecName
    oldLayout = layout
    copiedEnd = layout.end
  }

  /// Writes the head and the base.
  ///
  /// - Parameters:
  ///   - operation: What was asked for.
  ///   - isAbandoned: Whether to give up.
  /// - Throws: ``StoreError``; ``FileError``; `CancellationError` where it was given up.
  mutating func writeBase(during operation: StoreOperation, unless isAbandoned: () -> Bool) throws {
    try reportingZlibErrors(during: operation) {
      let head = try composer.head(
        codecName: codecName, batch: oldLayout.lastBatch, hasBase: oldIndex.entries.count > 0)
      try replacement.writer.write(head)
    }
    textSize = Int64(StoreLine.head(codecName: codecName).count)
    baseEnd = replacement.writer.count
    guard oldIndex.entries.count > 0 else { return }
    var sequence = BlockSequence(
      .base, batch: oldLayout.lastBatch, durableBatch: oldLayout.lastBatch, at: baseEnd, by: composer,
      isCompressed: true)
    var slice: [(key: StoreKey, place: EntryPlace)] = []
    var size = 0
    var start: StoreKey = ""
    while true {
      // By pieces of the index, so that nobody has to wait until all of it was gone through.
      let page = oldIndex.entries.entries(in: start..., limit: 4096, order: .ascending)
      guard let last = page.last else { break }
      start = last.key.successor
      for entry in page {
        slice.append((entry.key, entry.value))
        size += Int(entry.value.length)
        guard size >= FileCompaction.sliceSize else { continue }
        try write(slice, to: &sequence, during: operation, unless: isAbandoned)
        slice.removeAll(keepingCapacity: true)
        size = 0
      }
    }
    try write(slice, to: &sequence, during: operation, unless: isAbandoned)
    try reportingZlibErrors(during: operation) { try sequence.finish() }
    try flush(&sequence)
    blockCount += sequence.blockCount
    textSize += sequence.textSize
    baseEnd = replacement.writer.count
  }

  private mutating func write(
    _ slice: [(key: StoreKey, place: EntryPlace)], to sequence: inout BlockSequence, during operation: StoreOperation,
    unless isAbandoned: () -> Bool
  ) throws {
    let findings = slice.map { (key: $0.key, finding: CompressedFileIndex.Finding.found($0.place)) }
    var count = 0
    let texts = try lines.read(findings, during: operation, isKept: false) { _, line in
      count += 1
      if count.isMultiple(of: 256), isAbandoned() { throw CancellationError() }
      // As its own bytes: a slice would keep all of its block in memory.
      return Array(line)
    }
    for (entry, line) in zip(slice, texts) {
      guard let line else { continue }
      if isAbandoned() { throw CancellationError() }
      try reportingZlibErrors(during: operation) { try sequence.add(line[...], .set(entry.key, ())) }
      try flush(&sequence)
    }
  }

  private mutating func flush(_ sequence: inout BlockSequence) throws(FileError) {
    for change in sequence.takePlaced() { newIndex.apply(change) }
    let bytes = sequence.takeBytes()
    if !bytes.isEmpty { try replacement.writer.write(bytes) }
  }

  private func reportingZlibErrors(during operation: StoreOperation, _ body: () throws -> Void) throws {
    do {
      try body()
    } catch let error as ZlibError {
      throw StoreError(error, during: operation, store: lines.store)
    }
  }

  /// Copies what was appended to the old file, block by block as it is.
  ///
  /// - Parameters:
  ///   - file: The old file, or a copy of it.
  ///   - end: Up to where.
  ///   - operation: What was asked for.
  /// - Throws: ``FileError``; ``StoreError`` with `corrupted` where the file is shorter.
  mutating func copy(of file: any OpenFile, upTo end: Int64, during operation: StoreOperation) throws {
    while copiedEnd < end {
      let bytes = try file.readAll(from: copiedEnd, upTo: min(end, copiedEnd + 1 << 20))
      guard !bytes.isEmpty else {
        throw lines.damageError(nil, BlockReader.Damage(block: copiedEnd), during: operation)
      }
      try replacement.writer.write(bytes)
      copiedEnd += Int64(bytes.count)
    }
  }

  /// Copies all of the old file, byte for byte.
  ///
  /// - Parameters:
  ///   - file: The old file, or a copy of it.
  ///   - end: Up to where.
  ///   - operation: What was asked for.
  /// - Throws: As ``copy(of:upTo:during:)``.
  mutating func copyAll(of file: any OpenFile, upTo end: Int64, during operation: StoreOperation) throws {
    copiedEnd = 0
    try copy(of: file, upTo: end, during: operation)
  }

  /// The index of the new file.
  ///
  /// - Parameter changes: What was appended meanwhile, with the places in the old file.
  func index(with changes: [Change<EntryPlace>]) -> CompressedFileIndex {
    var index = newIndex
    let distance = baseEnd - oldLayout.end
    for change in changes {
      if case .set(let key, let place) = change {
        index.apply(.set(key, place.moved(by: distance)))
      } else {
        index.apply(change)
      }
    }
    return index
  }
}
#endif
