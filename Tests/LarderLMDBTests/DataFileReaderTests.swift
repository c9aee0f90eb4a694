#if LMDB
import Foundation
import Larder
import LarderFiles
import TestSupport
import Testing

@testable import LarderLMDB

/// Data files that cannot be read page by page.
@Suite struct DataFileReaderTests {
  private let folder: TemporaryFolder
  private var path: String { folder.path("data.mdb") }

  init() throws {
    folder = try TemporaryFolder()
  }

  /// A file system on a network, on which one call fails because the server has lost the file.
  private struct LosingFileSystem: ForwardingFileSystem {
    let base = POSIXFileSystem()
    /// The number of calls until the one that fails.
    let remaining = SharedCount()

    final class SharedCount: Sendable {
      private let count = Locked(0)

      func set(_ number: Int) { count.withLock { $0 = number } }

      func pass(_ operation: FileError.Operation) throws(FileError) {
        let isLast = count.withLock { count in
          count -= 1
          return count == 0
        }
        if isLast { throw FileError(operation, path: "data.mdb", errorNumber: ESTALE) }
      }
    }

    func open(_ path: String, _ mode: FileOpenMode) throws(FileError) -> any OpenStoreFile {
      try remaining.pass(.open)
      return File(base: try base.open(path, mode), remaining: remaining)
    }

    private final class File: ForwardingFile {
      let base: any OpenStoreFile
      let remaining: SharedCount

      init(base: any OpenStoreFile, remaining: SharedCount) {
        self.base = base
        self.remaining = remaining
      }

      func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(FileError) -> Int {
        try remaining.pass(.read)
        return try base.read(into: buffer, at: offset)
      }

      func attributes() throws(FileError) -> FileAttributes {
        try remaining.pass(.attributes)
        return try base.attributes()
      }
    }
  }

  @Test(arguments: [(1, .open), (2, .open), (3, .read)] as [(Int, StoreOperation)])
  func `a lost file is an error of the operation that notices it`(call: Int, operation: StoreOperation) async throws {
    try await DataFileImage.filled().write(to: path)
    let disk = LosingFileSystem()
    disk.remaining.set(call)
    let error = expectStoreError(.ioFailed) { try DataFileReader(path, store: "store", in: disk) }
    #expect(error?.operation == operation && error?.message == "the data file cannot be read")
    #expect((error?.underlying as? FileError)?.errorNumber == ESTALE)
    // An open file.
    let reader = try DataFileReader(path, store: "store", in: disk)
    let meta = try reader.latestSnapshot().meta
    var failures = 0
    for call in 1...10 {
      disk.remaining.set(call)
      do {
        #expect(try reader.latestSnapshot().meta == meta)
      } catch let error as StoreError {
        #expect(error.code == .ioFailed && error.operation == .read)
        failures += 1
      }
    }
    // The beginning of the file, whose end is found by a second call, and its size.
    #expect(failures >= 2 && failures < 10)
    disk.remaining.set(0)
    #expect(try reader.latestSnapshot().meta == meta)
    reader.close()
  }

  /// Their fields are those of a data file, but do not fit together.
  @Test func `two damaged meta pages are refused`() async throws {
    var image = try await DataFileImage.filled()
    image.setInBothMetas(1 << 40 as UInt64, at: DataFileImage.field(112))
    try image.write(to: path)
    for error in [
      expectStoreError(.corrupted) { try DataFileReader(path, store: "store") },
      await expectStoreError(.corrupted) { try await LMDBEnvironment.migrate(from: path, to: folder.path("new")) },
      await expectStoreError(.corrupted) { try await Examination(path, access: .immutable) },
    ] {
      #expect(error?.message.contains("both meta pages") == true)
    }
    #expect(try Data(contentsOf: URL(filePath: path)) == Data(image.bytes))
    #expect(try folder.names == ["data.mdb"])
  }

  /// LMDB 1.0 can encrypt all pages but the meta pages.
  @Test(.enabled(if: ExaminedImage.obstacle(.version3) == nil, "\(ExaminedImage.obstacle(.version3) ?? "")"))
  func `encrypted pages are refused`() async throws {
    var bytes = try await ExaminedImage.make(.version3).bytes
    // `MDB_ENCRYPT` among the flags of the environment.
    for meta in [0, ExaminedImage.pageSize] { bytes[meta + 53] |= 0x20 }
    try Data(bytes).write(to: URL(filePath: path))
    for error in [
      expectStoreError(.unsupported) { try DataFileReader(path, store: "store") },
      await expectStoreError(.unsupported) { try await LMDBEnvironment.migrate(from: path, to: folder.path("new")) },
      await expectStoreError(.unsupported) { try await Examination(path, access: .immutable) },
    ] {
      #expect(error?.message.contains("encrypted") == true)
    }
    #expect(try folder.names == ["data.mdb"])
  }
}
#endif
