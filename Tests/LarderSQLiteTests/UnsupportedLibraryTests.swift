#if SQLite && os(Linux)
import Foundation
import Larder
import LarderSQLite
import TestSupport
import Testing

/// A process whose SQLite is too old for strict tables.
@Suite struct UnsupportedLibraryTests {
  private static let variable = "LARDER_UNSUPPORTED_SQLITE"

  /// The folder of this process, or `nil` if it runs tests.
  private static let folder = ProcessInfo.processInfo.environment[variable]

  @Test(.enabled(if: folder != nil, "it is the work of a process that the other test starts"))
  func workOfAProcess() async throws {
    let folder = try #require(Self.folder)
    for access in StoreAccess.allCases {
      let error = await expectStoreError(.unsupported) {
        try await SQLiteStore<Int>(path: "\(folder)/store.sqlite", access: access)
      }
      #expect(error?.message.contains("version 3.36.0") == true)
    }
  }

  @Test(.enabled(if: folder == nil)) func `files are left as they are`() async throws {
    let folder = try TemporaryFolder()
    let version = """
      int sqlite3_libversion_number(void) { return 3036000; }
      const char *sqlite3_libversion(void) { return "3.36.0"; }
      """
    guard let functions = try ReplacedFunctions(version, in: folder.path) else { return }
    let path = folder.path("store.sqlite")
    let store = try await SQLiteStore<Int>(path: path)
    try await store.setValue(1, forKey: "k")
    try await store.close()
    let before = try Data(contentsOf: URL(filePath: path))
    let process = try TestProcess.start(
      "LarderSQLiteTests.UnsupportedLibraryTests.workOfAProcess",
      variables: functions.variables + ["\(Self.variable)=\(folder.path)"], output: folder.path("output"))
    let status = try CommandRun.wait(for: process)
    let output = try String(contentsOfFile: folder.path("output"), encoding: .utf8)
    #expect(status == 0, "\(output)")
    #expect(try Data(contentsOf: URL(filePath: path)) == before)
  }
}
#endif
