#if Compression
import Larder

/// What stands before the data of a block of version 1 of the format, as the header of a gzip member (RFC 1952) with two extra subfields.
///
/// | Bytes | What stands there |
/// | --- | --- |
/// | 0–9 | the fixed header: `1f 8b 08 04 00 00 00 00 00 ff` |
/// | 10–11 | the length of the extra field |
/// | 12–17 | the subfield `BC` of BGZF: the size of the block, less 1 |
/// | 18–21 | the subfield `LD`, and its length |
/// | 22 | the version of the format |
/// | 23 | ``Kind`` |
/// | 24 | ``Flags`` |
/// | 25–32 | the number of the batch |
/// | 33–40 | the last batch that was known to be durable |
/// | 41–44 | the place of the block within its batch, from 0 |
/// | 45–48 | the CRC-32C of everything behind the header |
/// | 49–… | the notes |
/// | last 4 | the CRC-32C of the header before it |
///
/// All numbers are little-endian, as everywhere in gzip. The checksum of gzip itself, at the end of the block, covers
/// the data only; with these two no bit of a block can change unnoticed.
struct Version1Header: Equatable {
  /// What a block is there for.
  enum Kind: UInt8 {
    /// The first one of a file: says what the file is.
    case head = 0
    /// A part of what the last compaction wrote: entries in key order, each key once.
    case base = 1
    /// A part of a batch of changes, or an empty batch, whose only purpose is to say what is durable.
    case batch = 2
  }

  /// What else there is to say of a block.
  struct Flags: OptionSet {
    let rawValue: UInt8

    /// It is the last one of its batch, or of the base; of a head: no base follows.
    static let isLast = Flags(rawValue: 1)
    /// Its data begin within a line.
    static let beginsWithinLine = Flags(rawValue: 2)
  }

  static let version: UInt8 = 1

  /// The most bytes that a block may have.
  static let maximumBlockSize = 1 << 16

  /// The bytes before the extra field's length, and those of its first subfield that never differ.
  static let fixedStart: [UInt8] = [0x1F, 0x8B, 0x08, 0x04, 0, 0, 0, 0, 0, 0xFF]
  private static let sizeSubfield: [UInt8] = [UInt8(ascii: "B"), UInt8(ascii: "C"), 2, 0]
  private static let ownSubfield: [UInt8] = [UInt8(ascii: "L"), UInt8(ascii: "D")]

  /// The bytes up to where the length of the header is known.
  static let lengthEnd = 22
  private static let notesStart = 49
  private static let checksumSize = 4

  /// The bytes of gzip's own checksum and size behind the data.
  private static let trailerSize = 8

  var kind: Kind
  var flags: Flags
  var batch: UInt64
  var durableBatch: UInt64
  var number: UInt32
  var notes: [UInt8]

  /// Why bytes are no header.
  enum Problem: Error, Equatable {
    /// Something is missing or wrong.
    case damaged
    /// The checksum is right, but a newer version wrote it.
    case newerVersion(UInt8)
  }

  /// A header and what it says of its block.
  struct Parsed: Equatable {
    var header: Version1Header
    /// The bytes of the block, header and trailer included.
    var blockSize: Int
    /// The bytes of the header.
    var size: Int
    var bodyChecksum: UInt32
  }

  // MARK: Reading

  /// How long a header says that it is, or `nil` where the bytes do not begin one.
  ///
  /// - Parameter bytes: At least ``lengthEnd`` bytes, if there are so many.
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

  /// Reads a header.
  ///
  /// - Parameter bytes: The beginning of a block; what stands behind the header is not looked at.
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
  ///   - parsed: Its header.
  ///   - bytes: All of the block.
  ///   - inflaters: Decompress it.
  /// - Throws: ``BlockText/Damage``; ``ZlibError`` where there is not enough memory.
  static func text(
    _ parsed: Parsed, of bytes: UnsafeRawBufferPointer, by inflaters: StreamPool<Inflater>
  ) throws -> [UInt8] {
    guard bytes.count == parsed.blockSize else { throw BlockText.Damage() }
    let body = UnsafeRawBufferPointer(rebasing: bytes[parsed.size...])
    // This covers the compressed bytes, and with them the text: that need not be looked at, too.
    guard CRC32C.checksum(of: body) == parsed.bodyChecksum else { throw BlockText.Damage() }
    return try BlockText.text(of: bytes, headerSize: parsed.size, by: inflaters)
  }

  /// Returns the text of a block whose header is damaged, by the checksum of gzip alone.
  ///
  /// - Parameters:
  ///   - bytes: All that could be the block.
  ///   - inflaters: Decompress it.
  /// - Throws: ``BlockText/Damage``; ``ZlibError`` where there is not enough memory.
  static func text(
    withoutHeader bytes: UnsafeRawBufferPointer, by inflaters: StreamPool<Inflater>
  ) throws -> [UInt8] {
    guard bytes.count <= maximumBlockSize, bytes.count >= lengthEnd else { throw BlockText.Damage() }
    // The length of the header stands there twice.
    let lengths = [
      12 + Int(bytes.littleEndian(at: 10, as: UInt16.self)),
      lengthEnd + Int(bytes.littleEndian(at: 20, as: UInt16.self)),
    ]
    for length in lengths {
      do {
        return try BlockText.checkedText(of: bytes, headerSize: length, by: inflaters)
      } catch is BlockText.Damage {
        // The other length may be the right one.
      }
    }
    throw BlockText.Damage()
  }
}
#endif
