#if LMDB
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderLMDB

@Suite struct DataFileHeaderTests {
  private func header(of bytes: [UInt8]) throws -> DataFileHeader {
    try DataFileHeader(bytes, store: "store")
  }

  /// Returns the code of the error for a data file, or `nil` if the file is accepted.
  private func refusal(of bytes: [UInt8]) -> StoreError.Code? {
    do throws(StoreError) {
      _ = try DataFileHeader(bytes, store: "store")
      return nil
    } catch {
      return error.code
    }
  }

  @Test func `files of LMDB are read`() async throws {
    let image = try await DataFileImage.filled()
    let header = try header(of: image.bytes)
    #expect(header.pageSize == DataFileImage.pageSize)
    #expect(header.lastPage < UInt64(image.bytes.count / DataFileImage.pageSize))
    #expect(header.roots.count == 2)
    let transactions: [UInt64] = [
      image.integer(at: DataFileImage.field(128)),
      image.integer(at: DataFileImage.field(128) + DataFileImage.secondMeta),
    ]
    #expect(header.transaction == transactions.max())
  }

  @Test func `the newer meta page counts`() async throws {
    var image = try await DataFileImage.filled()
    for (offset, transaction) in [(0, 70 as UInt64), (DataFileImage.secondMeta, 80)] {
      image.set(transaction, at: offset + DataFileImage.field(128))
      image.set(transaction + 1000, at: offset + DataFileImage.field(120))
    }
    #expect(try header(of: image.bytes).lastPage == 1080)
    image.set(90 as UInt64, at: DataFileImage.field(128))
    #expect(try header(of: image.bytes).lastPage == 1070)
    // Of two meta pages of the same transaction, LMDB uses the first.
    image.set(80 as UInt64, at: DataFileImage.field(128))
    #expect(try header(of: image.bytes).lastPage == 1070)
  }

  @Test func `errors describe the damage`() async throws {
    let image = try await DataFileImage.filled()
    func damaged(_ change: (inout DataFileImage) -> Void) -> StoreError.Code? {
      var copy = image
      change(&copy)
      return refusal(of: copy.bytes)
    }
    #expect(refusal(of: []) == .corrupted)
    #expect(refusal(of: [0, 0, 0]) == .corrupted)
    #expect(refusal(of: Array("a text".utf8)) == .unrecognizedFormat)
    #expect(refusal(of: Array(repeating: 0x20, count: 9000)) == .unrecognizedFormat)
    #expect(refusal(of: Array(repeating: 0, count: 9000)) == .unrecognizedFormat)
    #expect(damaged { $0.setInBothMetas(DataFileHeader.magic.byteSwapped, at: DataFileImage.field(0)) } == .unsupported)
    #expect(damaged { $0.bytes.removeSubrange(0..<DataFileImage.field(0) - 12) } == .unsupported)
    #expect(damaged { $0.set(2 as UInt32, at: DataFileImage.field(4)) } == .versionMismatch)
    #expect(
      damaged { $0.set(999 as UInt32, at: DataFileImage.field(4) + DataFileImage.secondMeta) } == .versionMismatch)
    #expect(
      damaged { $0.set(0 as UInt32, at: DataFileImage.field(0) + DataFileImage.secondMeta) } == .unrecognizedFormat)
    #expect(damaged { $0.set(0 as UInt32, at: DataFileImage.field(24)) } == .corrupted)
    #expect(damaged { $0.set(4095 as UInt32, at: DataFileImage.field(24)) } == .corrupted)
    #expect(damaged { $0.set(UInt32.max, at: DataFileImage.field(24)) } == .corrupted)
    #expect(damaged { $0.setInBothMetas(UInt64.max - 1, at: DataFileImage.field(120)) } == .corrupted)
    #expect(damaged { $0.setInBothMetas(DataFileHeader.maximumPageCount, at: DataFileImage.field(120)) } == .corrupted)
    for count in DataFileImage.field(0)..<(DataFileImage.secondMeta + DataFileImage.field(136)) {
      #expect(
        [.corrupted, .unrecognizedFormat].contains(refusal(of: Array(image.bytes.prefix(count)))), "\(count) bytes")
    }
    #expect(refusal(of: Array(image.bytes.prefix(DataFileImage.secondMeta + DataFileImage.field(136)))) == nil)
  }

  /// The library would report that it is no file of LMDB.
  @Test(arguments: [DataFileFormat.version1, .version3]) func `a file of the other library is refused`(
    _ readable: DataFileFormat
  )
    async throws
  {
    let image = try await DataFileImage.filled()
    guard readable != .linked else {
      #expect(try DataFileHeader(image.bytes, store: "store", readable: readable).format == readable)
      return
    }
    let error = expectStoreError(.versionMismatch) {
      try DataFileHeader(image.bytes, store: "store", readable: readable)
    }
    #expect(error?.message.contains("one of LMDB \(DataFileFormat.linked.library)") == true)
    #expect(error?.message.contains("runs with LMDB \(readable.library)") == true)
  }

  @Test func `only known versions of the library are supported`() {
    #expect(DataFileFormat.format(major: 0, minor: 9) == .version1)
    #expect(DataFileFormat.format(major: 1, minor: 0) == .version3)
    #expect(DataFileFormat.format(major: 1, minor: 4) == .version3)
    #expect(DataFileFormat.format(major: 2, minor: 0) == nil)
    #expect(DataFileFormat.format(major: 0, minor: 8) == nil)
    #expect(DataFileFormat.supported == .linked)
  }

  @Test func `arbitrary bytes are refused or read`() async throws {
    var random = SeededGenerator(test: #function)
    let image = try await DataFileImage.filled()
    for _ in 0..<3000 {
      _ = refusal(of: random.bytes(count: Int.random(in: 0...600, using: &random)))
      var damaged = Array(image.bytes.prefix(DataFileHeader.maximumSize))
      for _ in 0..<Int.random(in: 1...20, using: &random) {
        let place =
          Int.random(in: 0..<160, using: &random) + (Bool.random(using: &random) ? 0 : DataFileImage.secondMeta)
        damaged[place] = UInt8(truncatingIfNeeded: random.next())
      }
      _ = refusal(of: damaged)
    }
  }
}
#endif
