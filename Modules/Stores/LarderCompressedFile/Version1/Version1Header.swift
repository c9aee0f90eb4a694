#if Compression
import Larder
import LarderCompression

/// The header of a block in version 1 of the format: the header of a gzip member (RFC 1952) with two extra subfields.
///
/// | Bytes | Content |
/// | --- | --- |
/// | 0–9 | the fixed header: `1f 8b 08 04 00 00 00 00 00 ff` |
/// | 10–11 | the length of the extra field |
/// | 12–17 | the subfield `BC` of BGZF: the size of the block, minus 1 |
/// | 18–21 | the subfield `LD`, and its length |
/// | 22 | the version of the format |
/// | 23 | ``Kind`` |
/// | 24 | ``Flags`` |
/// | 25–32 | the number of the batch |
/// | 33–40 | the last batch that was known to be durable |
/// | 41–44 | the index of the block within its batch, from 0 |
/// | 45–48 | the CRC-32C of all bytes after the header |
/// | 49–… | the notes |
/// | last 4 | the CRC-32C of the preceding bytes of the header |
///
/// All numbers are little-endian, as everywhere in gzip. Gzip's own checksum, at the end of the block, covers only the
/// data. The two CRC-32C checksums detect every changed bit of a block.
struct Version1Header: Equatable {
  /// The purpose of a block.
  enum Kind: UInt8 {
    /// The first block of a file, which identifies the file.
    case head = 0
    /// A part of the output of the last compaction: entries in key order, each key once.
    case base = 1
    /// A part of a batch of changes. An empty batch only states which batches are durable.
    case batch = 2
  }

  /// Further properties of a block.
  struct Flags: OptionSet {
    let rawValue: UInt8

    /// The block is the last one of its batch or base, or a header that no base follows.
    static let isLast = Flags(rawValue: 1)
    /// The data begins within a line.
    static let beginsWithinLine = Flags(rawValue: 2)
  }

  static let version: UInt8 = 1

  /// The maximum size of a block, in bytes.
  static let maximumBlockSize = 1 << 16

  /// The bytes before the length of the extra field, and the constant bytes of its two subfields.
  static let fixedStart: [UInt8] = [0x1F, 0x8B, 0x08, 0x04, 0, 0, 0, 0, 0, 0xFF]
  private static let sizeSubfield: [UInt8] = [UInt8(ascii: "B"), UInt8(ascii: "C"), 2, 0]
  private static let ownSubfield: [UInt8] = [UInt8(ascii: "L"), UInt8(ascii: "D")]

  /// The number of bytes that determine the length of the header.
  static let lengthEnd = 22
  private static let notesStart = 49
  private static let checksumSize = 4

  /// The size of gzip's checksum and length after the data.
  private static let trailerSize = 8

  var kind: Kind
  var flags: Flags
  var batch: UInt64
  var durableBatch: UInt64
  var number: UInt32
  var notes: [UInt8]

  /// The reason why bytes are not a valid header.
  enum Problem: Error, Equatable {
    /// A part is missing or invalid.
    case damaged
    /// The checksum is right, but a newer version wrote the header.
    case newerVersion(UInt8)
  }

  /// A header and the properties of its block.
  struct Parsed: Equatable {
    var header: Version1Header
    /// The size of the block including header and trailer, in bytes.
    var blockSize: Int
    /// The size of the header, in bytes.
    var size: Int
    var bodyChecksum: UInt32
  }

  // MARK: Reading

  /// Returns the size that a header states, or `nil` if the bytes do not begin a header.
  ///
  /// - Parameter bytes: The bytes: at least ``lengthEnd`` of them, if the file has that many.
  static func size(at bytes: UnsafeRawBufferPointer) -> Int? {
    guard bytes.count >= lengthEnd, bytes.starts(with: fixedStart) else { return nil }
    let ownStart = 12 + sizeSubfield.count + 2
    guard bytes[12...].starts(with: sizeSubfield), bytes[ownStart...].starts(with: ownSubfield) else { return nil }
    let size = lengthEnd + Int(bytes.littleEndian(at: 20, as: UInt16.self))
    guard size == 12 + Int(bytes.littleEndian(at: 10, as: UInt16.self)), size >= notesStart + checksumSize else {
      return nil
    }
    return size
  }

  /// Returns whether bytes may begin a file of version 1.
  static func isBeginning(_ bytes: UnsafeRawBufferPointer) -> Bool {
    bytes.count >= lengthEnd && bytes.starts(with: fixedStart) && bytes[12...].starts(with: sizeSubfield)
      && bytes[18...].starts(with: ownSubfield)
  }

  /// Parses a header.
  ///
  /// - Parameter bytes: The beginning of a block. Bytes after the header are ignored.
  /// - Throws: ``Problem``.
  static func parse(_ bytes: UnsafeRawBufferPointer) throws(Problem) -> Parsed {
    guard let size = size(at: bytes), size <= bytes.count else { throw .damaged }
    let blockSize = Int(bytes.littleEndian(at: 16, as: UInt16.self)) + 1
    let checksum = CRC32C.checksum(of: UnsafeRawBufferPointer(rebasing: bytes[..<(size - checksumSize)]))
    guard checksum == bytes.littleEndian(at: size - checksumSize, as: UInt32.self), blockSize >= size + trailerSize
    else {
      throw .damaged
    }
    guard bytes[22] == version else { throw .newerVersion(bytes[22]) }
    let numbers = [25, 33].map { bytes.littleEndian(at: $0, as: UInt64.self) }
    guard let kind = Kind(rawValue: bytes[23]), numbers.allSatisfy({ $0 <= BlockStart.maximumBatch }) else {
      throw .damaged
    }
    let header = Version1Header(
      kind: kind, flags: Flags(rawValue: bytes[24]), batch: bytes.littleEndian(at: 25, as: UInt64.self),
      durableBatch: bytes.littleEndian(at: 33, as: UInt64.self), number: bytes.littleEndian(at: 41, as: UInt32.self),
      notes: Array(bytes[notesStart..<(size - checksumSize)]))
    return Parsed(
      header: header, blockSize: blockSize, size: size, bodyChecksum: bytes.littleEndian(at: 45, as: UInt32.self))
  }

  /// Returns the text of a block.
  ///
  /// - Parameters:
  ///   - parsed: The header of the block.
  ///   - bytes: The whole block.
  ///   - inflaters: The streams that decompress the text.
  /// - Throws: ``BlockText/Damage``; ``ZlibError`` if there is not enough memory.
  static func text(
    _ parsed: Parsed, of bytes: UnsafeRawBufferPointer, by inflaters: StreamPool<Inflater>
  ) throws -> [UInt8] {
    guard bytes.count == parsed.blockSize else { throw BlockText.Damage() }
    let body = UnsafeRawBufferPointer(rebasing: bytes[parsed.size...])
    // The checksum covers the compressed bytes, so the text itself need not be checked.
    guard CRC32C.checksum(of: body) == parsed.bodyChecksum else { throw BlockText.Damage() }
    return try BlockText.text(of: bytes, headerSize: parsed.size, by: inflaters)
  }

  /// Returns the text of a block whose header is damaged, after checking gzip's checksum.
  ///
  /// - Parameters:
  ///   - bytes: The bytes that may be a block.
  ///   - inflaters: The streams that decompress the text.
  /// - Throws: ``BlockText/Damage``; ``ZlibError`` if there is not enough memory.
  static func text(
    withoutHeader bytes: UnsafeRawBufferPointer, by inflaters: StreamPool<Inflater>
  ) throws -> [UInt8] {
    guard bytes.count <= maximumBlockSize, bytes.count >= lengthEnd else { throw BlockText.Damage() }
    // The header states its length twice.
    let lengths = [
      12 + Int(bytes.littleEndian(at: 10, as: UInt16.self)),
      lengthEnd + Int(bytes.littleEndian(at: 20, as: UInt16.self)),
    ]
    for length in lengths {
      do {
        return try BlockText.checkedText(of: bytes, headerSize: length, by: inflaters)
      } catch is BlockText.Damage {
        // The other length may be right.
      }
    }
    throw BlockText.Damage()
  }
}

/// A note about a change in the header of a block of version 1, so that the loss is known if the data of the block is
/// damaged.
enum Version1Note: Equatable {
  /// A key was set.
  case set(StoreKey)
  /// A key was removed.
  case remove(StoreKey)
  /// A range was removed. Its bounds have at most ``StoreKey/maximumLength`` + 1 bytes.
  case removeAll(KeyRange)
  /// The base has entries from the first to the last key, including both.
  case entries(first: StoreKey, last: StoreKey)

  /// The codec of the values, in the header of a file.
  case codec(name: String)

  private enum Code: UInt8 {
    case set = 1, remove, removeAllFrom, removeAllBetween, entries, codec
  }

  /// Returns the notes of a header, or `nil` if they are invalid.
  static func notes(of bytes: [UInt8]) -> [Version1Note]? {
    var rest = bytes[...]
    var notes: [Version1Note] = []
    while let byte = rest.popFirst() {
      guard let code = Code(rawValue: byte), let first = key(&rest) else { return nil }
      switch code {
      case .set: notes.append(.set(first))
      case .remove: notes.append(.remove(first))
      case .removeAllFrom: notes.append(.removeAll(KeyRange(from: first, upTo: nil)))
      case .removeAllBetween:
        guard let second = key(&rest) else { return nil }
        notes.append(.removeAll(KeyRange(from: first, upTo: second)))
      case .entries:
        guard let second = key(&rest) else { return nil }
        notes.append(.entries(first: first, last: second))
      case .codec: notes.append(.codec(name: String(decoding: first.bytes, as: UTF8.self)))
      }
    }
    return notes
  }

  private static func key(_ rest: inout ArraySlice<UInt8>) -> StoreKey? {
    guard let low = rest.popFirst(), let high = rest.popFirst() else { return nil }
    let count = Int(low) | Int(high) << 8
    guard rest.count >= count else { return nil }
    defer { rest.removeFirst(count) }
    return StoreKey(bytes: rest.prefix(count))
  }
}
#endif
