#if LMDB
import Larder

/// The two meta pages at the beginning of an LMDB data file, as LMDB 0.9 writes them on 64-bit machines.
///
/// A page begins with a header of 16 bytes. In a meta page, the magic number and the version follow (4 bytes each),
/// then an address and the size of the map (8 each), the records of the two databases that every file has (48 each; the
/// first begins with the page size), and the numbers of the last page and of the transaction (8 each). All integers are
/// in native byte order.
/// Source: `struct MDB_meta` and `struct MDB_db` in `mdb.c` of LMDB 0.9.
struct DataFileHeader: Equatable {
  /// A reason to reject a data file.
  enum Refusal: Error, Equatable {
    /// The file ends within the meta pages.
    case truncated
    case otherByteOrder
    case otherWordSize
    case otherVersion(UInt32)
    /// The file is not an LMDB file.
    case unrecognized
    /// The meta pages contradict themselves.
    case damaged
  }

  static let magic: UInt32 = 0xBEEF_C0DE
  static let version: UInt32 = 1
  static let pageHeaderSize = 16
  static let metaSize = 136

  /// The number of bytes to read for a header: both meta pages, at the largest page size.
  static let maximumSize = maximumPageSize + pageHeaderSize + metaSize
  static let maximumPageSize = 1 << 16

  /// An upper bound for the number of pages: the file size in bytes still fits into an integer.
  static let maximumPageCount: UInt64 = 1 << 45

  /// The size of a page in bytes.
  let pageSize: Int
  /// The number of the last page in use.
  let lastPage: UInt64
  /// The number of the transaction that wrote the meta page.
  let transaction: UInt64
  /// The root pages of the free page tree and of the main database, without those of empty trees.
  let roots: [UInt64]

  /// Parses the newer of the two meta pages.
  ///
  /// - Parameter bytes: The first `maximumSize` bytes of the file, or the whole file if it is shorter.
  init(_ bytes: [UInt8]) throws(Refusal) {
    let first = try DataFileHeader(metaPage: bytes[...])
    guard bytes.count >= first.pageSize + DataFileHeader.pageHeaderSize + DataFileHeader.metaSize else {
      throw .truncated
    }
    let second = try DataFileHeader(metaPage: bytes[first.pageSize...])
    guard first.pageSize == second.pageSize else { throw .damaged }
    self = first.transaction >= second.transaction ? first : second
  }

  private init(metaPage: ArraySlice<UInt8>) throws(Refusal) {
    let bytes = PageBytes(metaPage)
    guard let magic: UInt32 = bytes.integer(at: 16) else {
      throw metaPage.isEmpty || DataFileHeader.isBeginning(metaPage) ? .truncated : .unrecognized
    }
    guard magic == DataFileHeader.magic else {
      if magic.byteSwapped == DataFileHeader.magic { throw .otherByteOrder }
      // The page header is shorter on 32-bit machines.
      guard let early: UInt32 = bytes.integer(at: 12) else { throw .unrecognized }
      if early == DataFileHeader.magic || early.byteSwapped == DataFileHeader.magic { throw .otherWordSize }
      throw .unrecognized
    }
    guard let version: UInt32 = bytes.integer(at: 20) else { throw .truncated }
    guard version == DataFileHeader.version else { throw .otherVersion(version) }
    guard
      let pageSize: UInt32 = bytes.integer(at: 40), let freeRoot: UInt64 = bytes.integer(at: 80),
      let mainRoot: UInt64 = bytes.integer(at: 128), let lastPage: UInt64 = bytes.integer(at: 136),
      let transaction: UInt64 = bytes.integer(at: 144)
    else { throw .truncated }
    guard
      pageSize >= 256, Int(pageSize) <= DataFileHeader.maximumPageSize, pageSize.nonzeroBitCount == 1,
      lastPage < DataFileHeader.maximumPageCount
    else { throw .damaged }
    self.pageSize = Int(pageSize)
    self.lastPage = lastPage
    self.transaction = transaction
    roots = [freeRoot, mainRoot].filter { $0 != UInt64.max }
  }

  /// Returns whether a few bytes can be the beginning of a meta page: page number 0, followed by at most the page
  /// flags.
  private static func isBeginning(_ bytes: ArraySlice<UInt8>) -> Bool {
    bytes.prefix(8).allSatisfy { $0 == 0 }
  }
}

/// Reads unaligned integers in native byte order.
struct PageBytes {
  private let bytes: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) {
    self.bytes = bytes
  }

  /// Returns the integer at an offset, or `nil` if the bytes end before it does.
  func integer<Integer: FixedWidthInteger & BitwiseCopyable>(at offset: Int) -> Integer? {
    guard offset >= 0, offset <= bytes.count - MemoryLayout<Integer>.size else { return nil }
    return bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: Integer.self) }
  }
}
#endif
