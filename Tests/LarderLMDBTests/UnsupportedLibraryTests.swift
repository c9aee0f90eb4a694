#if LMDB && os(Linux)
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderLMDB

/// A process whose LMDB is of a version that is not supported.
@Suite struct UnsupportedLibraryTests {
  private static let variable = "LARDER_UNSUPPORTED_LMDB"

  /// The folder of this process, or `nil` if it runs tests.
  private static let folder = ProcessInfo.processInfo.environment[variable]

  @Test(.enabled(if: folder != nil, "it is the work of a process that the other test starts"))
  func workOfAProcess() async throws {
    let folder = try #require(Self.folder)
    for name in ["environment", "new"] {
      for access in StoreAccess.allCases {
        let error = await expectStoreError(.unsupported) {
          try await LMDBStore<Int>(path: "\(folder)/\(name)", access: access)
        }
        #expect(error?.message.contains("runs with LMDB 0.8.0") == true)
      }
    }
  }

  @Test(.enabled(if: folder == nil)) func `files are left as they are`() async throws {
    let folder = try TemporaryFolder()
    let version = """
      char *mdb_version(int *major, int *minor, int *patch) {
        if (major) *major = 0;
        if (minor) *minor = 8;
        if (patch) *patch = 0;
        return "LMDB 0.8.0";
      }
      """
    guard let functions = try ReplacedFunctions(version, in: folder.path) else { return }
    let store = try await LMDBStore<Int>(path: folder.path("environment"))
    try await store.setValue(1, forKey: "k")
    try await store.close()
    let before = try Data(contentsOf: URL(filePath: folder.path("environment/data.mdb")))
    let process = try TestProcess.start(
      "LarderLMDBTests.UnsupportedLibraryTests.workOfAProcess",
      variables: functions.variables + ["\(Self.variable)=\(folder.path)"], output: folder.path("output"))
    let status = try CommandRun.wait(for: process)
    let output = try String(contentsOfFile: folder.path("output"), encoding: .utf8)
    #expect(status == 0, "\(output)")
    #expect(try Data(contentsOf: URL(filePath: folder.path("environment/data.mdb"))) == before)
    #expect(!FileManager.default.fileExists(atPath: folder.path("new")))
  }
}
#endif
