#if LMDB
import CLMDB
import Larder

/// A format of LMDB's data files on 64-bit machines that one major version of the library reads and writes.
///
/// A page begins with its number (8 bytes). In LMDB 1.0 the number of a transaction follows (8). Both then have a filler,
/// flags and the bounds of the free space (2 each).
/// Source: `struct MDB_page` and `MDB_DATA_VERSION` in `mdb.c` of LMDB 0.9 and 1.0.
struct DataFileFormat: Equatable {
  /// The number in the file.
  let version: UInt32
  /// The versions of LMDB with this format.
  let library: String
  /// The size of the header of a page, in bytes.
  let pageHeaderSize: Int

  static let version1 = DataFileFormat(version: 1, library: "0.9", pageHeaderSize: 16)
  static let version3 = DataFileFormat(version: 3, library: "1.0", pageHeaderSize: 24)
  static let all = [version1, version3]

  /// Returns the format of a version of the library, or `nil` if it is unknown.
  static func format(major: Int32, minor: Int32) -> DataFileFormat? {
    switch (major, minor) {
    case (0, 9): version1
    case (1, _): version3
    default: nil
    }
  }

  /// The format of the LMDB library that this process has loaded, which need not be the one that it was built with, or
  /// `nil` for a version that is not supported.
  static let supported: DataFileFormat? = {
    var (major, minor): (Int32, Int32) = (0, 0)
    mdb_version(&major, &minor, nil)
    return format(major: major, minor: minor)
  }()

  /// The format of the LMDB library that this process has loaded.
  ///
  /// With a version that is not supported, no environment can be opened.
  static var linked: DataFileFormat { supported ?? version3 }

  /// The place in a page from which the places of its nodes count.
  var nodeBase: Int { self == .version1 ? 0 : pageHeaderSize }

  /// A Boolean value that indicates whether the key of a named database ends with a zero byte after the name.
  var terminatesNames: Bool { self != .version1 }

  /// A Boolean value that indicates whether the data of a node begins at an even distance from its key.
  var alignsData: Bool { self != .version1 }

  /// The number of bytes by which the fields of a page are behind their places in version 1.
  var shift: Int { pageHeaderSize - DataFileFormat.version1.pageHeaderSize }

  /// Returns the distance of the data of a node from its key, for the size of the key in bytes.
  func data(afterKeyOf size: Int) -> Int { alignsData ? size + size & 1 : size }

  /// Returns the key of a named database in the main database.
  func key(ofDatabase name: StoreKey) -> StoreKey {
    terminatesNames ? StoreKey(bytes: name.bytes + [0]) : name
  }

  /// Returns the name of a named database, or `nil` if a key of the main database cannot be that of one.
  func databaseName(ofKey key: UnsafeRawBufferPointer) -> String? {
    let name = terminatesNames ? key.dropLast() : key[...]
    guard !name.contains(0), !terminatesNames || key.last == 0 else { return nil }
    return String(validating: name, as: UTF8.self)
  }
}

/// The two meta pages at the beginning of an LMDB data file, as LMDB writes them on 64-bit machines.
///
/// In a meta page, the magic number and the version follow the page's header (4 bytes each), then an address and the size
/// of the map (8 each), the records of the two databases that every file has (48 each; the first begins with the page
/// size), and the numbers of the last page and of the transaction (8 each). All integers are in native byte order.
/// Source: `struct MDB_meta` and `struct MDB_db` in `mdb.c` of LMDB 0.9 and 1.0.
struct DataFileHeader: Equatable {
  static let magic: UInt32 = 0xBEEF_C0DE
  static let metaSize = 136

  /// The number of bytes to read for a header: both meta pages, at the largest page size.
  static let maximumSize = maximumPageSize + DataFileFormat.version3.pageHeaderSize + metaSize
  static let maximumPageSize = 1 << 16

  /// An upper bound for the number of pages: the file size in bytes still fits into an integer.
  static let maximumPageCount: UInt64 = 1 << 45

  let format: DataFileFormat
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
  /// - Parameters:
  ///   - bytes: The first ``maximumSize`` bytes of the file, or the whole file if it is shorter.
  ///   - store: The name of the environment, for errors.
  ///   - readable: The format that is accepted, or `nil` for all. Defaults to that of the loaded library.
  /// - Throws: ``StoreError`` with `unrecognizedFormat`, `unsupported`, `versionMismatch` or `corrupted`.
  init(_ bytes: [UInt8], store: String, readable: DataFileFormat? = .linked) throws(StoreError) {
    func error(_ code: StoreError.Code, _ message: String) -> StoreError {
      StoreError(code, during: .open, store: store, message: message)
    }
    let truncated = error(.corrupted, "the data file is truncated: it ends before its second meta page does")
    let damaged = error(.corrupted, "the data file is damaged: its meta pages contradict themselves")

    func parse(_ metaPage: ArraySlice<UInt8>) throws(StoreError) -> DataFileHeader {
      let bytes = PageBytes(metaPage)
      guard
        let format = DataFileFormat.all.first(where: { bytes.integer(at: $0.pageHeaderSize) == DataFileHeader.magic })
      else {
        // The page header is shorter on 32-bit machines.
        let numbers: [UInt32] = [16, 24, 12].compactMap { bytes.integer(at: $0) }
        if numbers.prefix(2).contains(where: { $0.byteSwapped == DataFileHeader.magic }) {
          throw error(.unsupported, "the data file was written on a machine with a different byte order")
        }
        if numbers.contains(where: { [$0, $0.byteSwapped].contains(DataFileHeader.magic) }) {
          throw error(.unsupported, "the data file was written by a 32-bit build of LMDB")
        }
        // A power failure can leave the beginning of a first page, which begins with the page number 0.
        if metaPage.count < DataFileFormat.version3.pageHeaderSize + 4, metaPage.prefix(8).allSatisfy({ $0 == 0 }) {
          throw truncated
        }
        throw error(.unrecognizedFormat, "the file is not an LMDB data file: its magic number is missing")
      }
      guard let version: UInt32 = bytes.integer(at: format.pageHeaderSize + 4) else { throw truncated }
      // Its pages have a header of 16 bytes in LMDB 1.0.
      if format == .version1, version == DataFileFormat.version3.version {
        throw error(.unsupported, "the data file was written by a 32-bit build of LMDB")
      }
      guard version == format.version else {
        throw error(
          .versionMismatch,
          "the data file has version \(version) of LMDB's format; only the versions 1 (LMDB 0.9) and 3 (LMDB 1.0) are "
            + "supported")
      }
      if let readable, format != readable {
        throw error(
          .versionMismatch,
          "the data file is one of LMDB \(format.library), and this program runs with LMDB \(readable.library), which "
            + "cannot read it; create a new file from it with larder migrate or LMDBEnvironment.migrate(from:to:), or "
            + "open it with a program that runs with LMDB \(format.library)")
      }
      guard let header = DataFileHeader(metaPage: bytes, format) else { throw truncated }
      guard
        header.pageSize >= 256, header.pageSize <= DataFileHeader.maximumPageSize, header.pageSize.nonzeroBitCount == 1,
        header.lastPage < DataFileHeader.maximumPageCount
      else { throw damaged }
      return header
    }

    let first = try parse(bytes[...])
    guard bytes.count >= first.pageSize + first.format.pageHeaderSize + DataFileHeader.metaSize else {
      throw truncated
    }
    let second = try parse(bytes[first.pageSize...])
    guard first.pageSize == second.pageSize, first.format == second.format else { throw damaged }
    self = first.transaction >= second.transaction ? first : second
  }

  /// Reads a meta page without checking it, or returns `nil` if it is too short.
  init?(metaPage bytes: PageBytes, _ format: DataFileFormat) {
    guard
      let pageSize: UInt32 = bytes.integer(at: 40 + format.shift),
      let freeRoot: UInt64 = bytes.integer(at: 80 + format.shift),
      let mainRoot: UInt64 = bytes.integer(at: 128 + format.shift),
      let lastPage: UInt64 = bytes.integer(at: 136 + format.shift),
      let transaction: UInt64 = bytes.integer(at: 144 + format.shift)
    else { return nil }
    self.format = format
    self.pageSize = Int(pageSize)
    self.lastPage = lastPage
    self.transaction = transaction
    roots = [freeRoot, mainRoot].filter { $0 != UInt64.max }
  }
}

/// Checks whether the tree roots of an LMDB data file are inside the file.
///
/// LMDB maps the file and trusts it: accessing a page beyond its end ends the process. A file may be shorter than its
/// last page number implies, because LMDB does not write pages that a transaction allocated and freed again. Only a
/// walk over all pages could tell whether any other page is missing. This check therefore reads a bounded number of
/// pages: the roots that the newer meta page names, and the roots of the named databases, if a single page lists them
/// all. A truncated file has usually lost one of them, because every write moves the root of its tree, mostly toward
/// the end.
/// Source of the layout: `struct MDB_page`, `MDB_node` and `MDB_db` in `mdb.c` of LMDB 0.9 and 1.0.
struct DataFileRoots {
  private static let leafFlag: UInt16 = 0x02
  private static let databaseFlag: UInt16 = 0x02

  /// The header of the file.
  let header: DataFileHeader

  /// The size of the file in bytes.
  let fileSize: Int64

  /// A closure that reads part of the file; it returns fewer bytes if the file ends earlier.
  let read: (_ offset: Int64, _ count: Int) throws -> [UInt8]

  /// Returns the number of a root page that is missing or holds another page, or `nil` if all roots are present.
  ///
  /// - Throws: The error that `read` throws.
  func firstMissing() throws -> UInt64? {
    if header.lastPage < pageCount { return nil }
    for root in header.roots {
      guard let page = try page(root) else { return root }
      for root in databaseRoots(in: page) {
        guard try self.page(root) != nil else { return root }
      }
    }
    return nil
  }

  /// The number of whole pages in the file.
  private var pageCount: UInt64 { UInt64(fileSize) / UInt64(header.pageSize) }

  /// Returns the bytes of a page, or `nil` if it is not in the file.
  private func page(_ number: UInt64) throws -> PageBytes? {
    guard number <= header.lastPage, number < pageCount else { return nil }
    let bytes = try read(Int64(number) * Int64(header.pageSize), header.pageSize)
    let page = PageBytes(bytes[...])
    guard bytes.count == header.pageSize, let own: UInt64 = page.integer(at: 0), own == number else { return nil }
    return page
  }

  /// Returns the roots of the named databases listed in a page, if it is a leaf.
  private func databaseRoots(in page: PageBytes) -> [UInt64] {
    let format = header.format
    guard let flags: UInt16 = page.integer(at: 10 + format.shift), flags & DataFileRoots.leafFlag != 0,
      let lower: UInt16 = page.integer(at: 12 + format.shift)
    else { return [] }
    return (0..<max(0, (Int(lower) + format.nodeBase - format.pageHeaderSize) / 2)).compactMap { index in
      guard let offset: UInt16 = page.integer(at: format.pageHeaderSize + 2 * index) else { return nil }
      let place = Int(offset) + format.nodeBase
      guard
        let nodeFlags: UInt16 = page.integer(at: place + 4), nodeFlags & DataFileRoots.databaseFlag != 0,
        let keySize: UInt16 = page.integer(at: place + 6),
        // The record of a database ends with its root; an empty database has none.
        let root: UInt64 = page.integer(at: place + 8 + format.data(afterKeyOf: Int(keySize)) + 40), root != UInt64.max
      else { return nil }
      return root
    }
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
