#if LMDB
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderLMDB

/// Files and programs of the other major version of LMDB.
@Suite(.enabled(if: ForeignTool.otherLibraryObstacle == nil, "\(ForeignTool.otherLibraryObstacle ?? "")"))
struct OtherLibraryTests {
  private static let other = DataFileFormat.linked == .version1 ? DataFileFormat.version3 : .version1

  /// Runs a Python program with the other library.
  private func run(_ program: String, _ path: String) throws -> [Substring] {
    // Python loads the library of the system unless this variable names another one.
    let setting = OtherLibraryTests.other == .version3 ? ForeignTool.otherLibrary ?? "" : ""
    return try ForeignTool.lines(
      of: [
        "LD_LIBRARY_PATH=\(setting)", ForeignTool.python ?? "", "-c", "import lmdb, sys\n" + program, path,
      ])
  }

  private let creation = """
    environment = lmdb.open(sys.argv[1], max_dbs=3, map_size=1 << 24)
    database = environment.open_db(b"default")
    with environment.begin(write=True) as transaction:
      for number in range(1000): transaction.put(b"%d" % number, b"value", db=database)
    """

  /// The bytes of the files of an environment.
  private func content(of path: String) throws -> [String: Data] {
    let names = try FileManager.default.contentsOfDirectory(atPath: path)
    return try Dictionary(
      uniqueKeysWithValues: names.map { ($0, try Data(contentsOf: URL(filePath: "\(path)/\($0)"))) })
  }

  @Test(arguments: [StoreAccess.readWrite, .readOnly, .immutable])
  func `a file of the other library is refused and left as it is`(_ access: StoreAccess) async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    _ = try run(creation, path)
    let before = try content(of: path)
    let error = await expectStoreError(.versionMismatch) {
      try await LMDBStore<String>(path: path, access: access)
    }
    #expect(error?.message.contains("one of LMDB \(OtherLibraryTests.other.library)") == true)
    #expect(error?.message.contains("runs with LMDB \(DataFileFormat.linked.library)") == true)
    #expect(try content(of: path) == before)
  }

  /// The other program reads what it has written, after this one was refused.
  @Test func `a program with the other library goes on`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    let waiting = """
      import time, os
      end = time.time() + 60
      while not os.path.exists(sys.argv[1] + ".refused") and time.time() < end: time.sleep(0.01)
      with environment.begin(write=True) as transaction: transaction.put(b"after", b"value", db=database)
      with environment.begin() as transaction: print(transaction.stat(db=database)["entries"])
      """
    async let lines = Task.detached { [creation] in
      try run(creation + "\nopen(sys.argv[1] + '.open', 'w')\n" + waiting, path)
    }
    .value
    while !FileManager.default.fileExists(atPath: path + ".open") { try await Task.sleep(for: .milliseconds(5)) }
    await expectStoreError(.versionMismatch) { try await LMDBStore<String>(path: path) }
    try Data().write(to: URL(filePath: path + ".refused"))
    #expect(try await lines == ["1001"])
  }

  @Test func `the version is that of the loaded library`() {
    let isReplaced = ProcessInfo.processInfo.environment["LD_LIBRARY_PATH"] == ForeignTool.otherLibrary
    #expect(LMDBEnvironment.libraryVersion.hasPrefix(isReplaced ? "1." : "0.9."))
    #expect(DataFileFormat.linked == (isReplaced ? .version3 : .version1))
  }
}
#endif
