import Foundation
import GRDB
import Larder
import LarderGRDB
import Testing

struct User: Codable, Hashable, Sendable {
  var name: String
}

/// A table of the program, beside the stores.
struct Order: Codable, FetchableRecord, PersistableRecord {
  static let databaseTableName = "orders"
  var id: Int
  var total: Int
}

/// A folder with a database, which is removed with the last reference to it.
final class TestDatabase {
  let folder: String
  var path: String { "\(folder)/app.sqlite" }

  init() throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "larder-\(UUID())").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  }

  deinit {
    do {
      try FileManager.default.removeItem(atPath: folder)
    } catch {
      Issue.record(error, "the folder of a test could not be removed")
    }
  }

  /// Opens a pool with the table of orders.
  func pool(_ configuration: Configuration = Configuration()) throws -> DatabasePool {
    let pool = try DatabasePool(path: path, configuration: configuration)
    try pool.write { db in
      try db.execute(sql: "CREATE TABLE IF NOT EXISTS orders(id INTEGER PRIMARY KEY, total INTEGER NOT NULL)")
    }
    return pool
  }

  /// Runs the command `sqlite3` and returns its output.
  func command(_ sql: String) throws -> String {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["sqlite3", path, sql]
    process.standardOutput = output
    try process.run()
    let data = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    return String(decoding: data, as: UTF8.self).trimmingCharacters(in: .newlines)
  }
}

/// Expects that a closure throws a `StoreError` with a code.
@discardableResult
func expectStoreError<Result>(
  _ code: StoreError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Result
) async -> StoreError? {
  let error = await #expect(throws: StoreError.self, sourceLocation: sourceLocation) { _ = try await body() }
  #expect(error?.code == code, sourceLocation: sourceLocation)
  return error
}

/// The events that an observer received.
final class Events: Sendable {
  private let stream: AsyncStream<StoreEvent>
  private let continuation: AsyncStream<StoreEvent>.Continuation

  init() {
    (stream, continuation) = AsyncStream.makeStream()
  }

  func receive(_ event: StoreEvent) { continuation.yield(event) }

  /// Ends the stream and returns all events.
  func finish() async -> [StoreEvent] {
    continuation.finish()
    return await stream.reduce(into: []) { $0.append($1) }
  }
}
