#if Compression
import Larder
import LarderCompression

/// Functions that identify a file by its beginning.
enum FileIdentity {
  /// The place where a header was found.
  enum Source {
    /// The first block, the header.
    case head
    /// The end mark, because the first block is damaged.
    case mark
    /// Notes, because the first block and the end mark are damaged.
    case notes
  }

  /// Finds the header of a file.
  ///
  /// - Parameters:
  ///   - window: The file.
  ///   - inflaters: The streams that decompress its blocks.
  /// - Returns: The header and its source.
  /// - Throws: ``FileProblem`` if the file is not a store, has another version of the format, or has no readable header;
  ///   any error of reading.
  static func identify(
    _ window: FileWindow, inflaters: StreamPool<ZlibInflater>
  ) throws -> (head: FileHead, source: Source) {
    var window = window
    let start = try window.withBytes(at: 0, count: BlockFrame.maximumSize) { Array($0) }
    if let found = try start.withUnsafeBytes({ try head(of: $0, at: 0, inflaters: inflaters) }) {
      return found
    }
    // If the first page is lost, notes may still repeat the header.
    var place: Int64 = 0
    var falseMatchBudget = BlockFinder.falseMatchLimit(forFileOf: window.size)
    while place < window.size {
      let (places, end) = try window.places(of: BlockFrame.magic, from: place)
      for candidate in places where candidate > 0 {
        let found = try window.withBytes(at: candidate, count: BlockFrame.maximumSize) { bytes in
          if isCandidate(bytes) { falseMatchBudget -= Int64(BlockText.maximumSize) }
          return try head(of: bytes, at: candidate, inflaters: inflaters)
        }
        if let found { return found }
        guard falseMatchBudget > 0 else {
          throw FileProblem.damaged(at: 0, reason: "too many places after it only look like blocks")
        }
      }
      place = end
    }
    throw foreignFile(beginning: start) ?? .damaged(at: 0, reason: "the first block of the file is damaged")
  }

  /// Returns whether bytes look like a block of a store, so decompressing them is worthwhile.
  private static func isCandidate(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard let size = BlockFrame.size(at: bytes), size <= bytes.count else { return false }
    // Other programs leave the field of the seal zero.
    return bytes.littleEndian(at: 4, as: UInt32.self) != 0
  }

  /// Returns the header that a block has as its first line or repeats with its notes, or `nil` if there isn't one.
  private static func head(
    of bytes: UnsafeRawBufferPointer, at offset: Int64, inflaters: StreamPool<ZlibInflater>
  ) throws -> (head: FileHead, source: Source)? {
    guard isCandidate(bytes), let size = BlockFrame.size(at: bytes) else { return nil }
    let block = UnsafeRawBufferPointer(rebasing: bytes[..<size])
    guard let text = try BlockText.checkedText(of: block, by: inflaters) else { return nil }
    let notesStart = BlockStart.read(text)?.end
    if let notesStart, BlockNotes.range(in: text, at: notesStart) == nil { return nil }
    let lineStart = notesStart ?? 0
    let line = text[lineStart..<(StoreText.lineEnd(in: text, from: lineStart) ?? text.count)]
    do {
      let head = try FileHead(readingLine: line)
      guard BlockFrame.isSealed(block, salt: head.salt, at: offset) else { return nil }
      guard notesStart == nil else { return (head, .notes) }
      if offset == 0 { return (head, .head) }
      return offset == head.markOffset ? (head, .mark) : nil
    } catch .newerVersion(let version) where offset == 0 {
      throw FileProblem.version(version)
    } catch {
      return nil
    }
  }

  /// Returns the kind of a file that another program or a former version wrote, or `nil` if the bytes may begin a store.
  ///
  /// - Parameter start: The first bytes of the file, as many as a block may have, if the file has that many.
  static func foreignFile(beginning start: [UInt8]) -> FileProblem? {
    guard start.starts(with: [0x1F, 0x8B]) else {
      return start.isEmpty
        ? .damaged(at: 0, reason: "the file is empty") : .foreign("is not a gzip file, so it is not a store")
    }
    return start.withUnsafeBytes { bytes in
      let blockStart: [UInt8] = [UInt8(ascii: "B"), UInt8(ascii: "C"), 2, 0]
      guard bytes.count >= BlockFrame.headerSize, bytes.starts(with: BlockFrame.magic),
        bytes[12...].starts(with: blockStart)
      else { return .foreign("is a gzip file of another program; import its content into a new store") }
      // A store has its seal there.
      guard bytes.littleEndian(at: 4, as: UInt32.self) == 0 else { return nil }
      // Version 1 has a subfield of its own instead.
      if bytes[18...].starts(with: [UInt8(ascii: "L"), UInt8(ascii: "D")]) { return .version(1) }
      return .foreign("is a gzip file in blocks (BGZF) of another program, such as a BAM file, not a store")
    }
  }
}
#endif
