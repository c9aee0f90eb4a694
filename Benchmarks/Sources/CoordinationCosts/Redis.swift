import Foundation
import PostgresServers

#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

/// A Redis server of its own folder, and one connection to it, on which each call waits for its answer.
final class Redis {
  private static let compareAndDelete =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"

  private let server: pid_t
  private let descriptor: Int32
  private var unread: [UInt8] = []
  private var script = ""

  /// Starts a server.
  ///
  /// - Parameters:
  ///   - folder: The folder of its log and its socket, which is created.
  ///   - policy: The value of `appendfsync`.
  /// - Returns: `nil` if Redis is not installed.
  init?(folder: String, policy: String) throws {
    let programs = ["/usr/bin/redis-server", "/opt/homebrew/bin/redis-server", "/usr/local/bin/redis-server"]
    guard let program = programs.first(where: FileManager.default.isExecutableFile) else {
      FileHandle.standardError.write(Data("Redis is not installed, so it is not measured.\n".utf8))
      return nil
    }
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    server = try CommandRun.start(
      [
        program, "--port", "0", "--unixsocket", folder + "/socket", "--dir", folder, "--save", "", "--appendonly",
        "yes",
        "--appendfsync", policy,
      ], files: ["/dev/null", "/dev/null", "/dev/null"])
    while !FileManager.default.fileExists(atPath: folder + "/socket") { usleep(10_000) }
    #if canImport(Darwin)
    descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
    #else
    descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    #endif
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: (folder + "/socket").utf8) }
    let code = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard code == 0 else { throw CocoaError(.fileReadUnknown) }
    script = try call(["SCRIPT", "LOAD", Self.compareAndDelete])
  }

  /// Takes a lock by the usual command, and releases it by the usual script.
  func lock() throws {
    let token = "\(UInt64.random(in: 0 ... .max))"
    guard try call(["SET", "job", token, "NX", "PX", "10000"]) == "OK",
      try call(["EVALSHA", script, "1", "job", token]) == "1"
    else { throw CocoaError(.featureUnsupported) }
  }

  /// Counts a request, and sets the end of its window, in one round trip.
  func count() throws {
    try send([["INCR", "client"], ["EXPIRE", "client", "60"]])
    _ = (try answer(), try answer())
  }

  /// Ends the server.
  func stop() throws {
    close(descriptor)
    kill(server, SIGTERM)
    _ = try CommandRun.wait(for: server)
  }

  private func call(_ words: [String]) throws -> String {
    try send([words])
    return try answer()
  }

  private func send(_ commands: [[String]]) throws {
    let text = commands.map { words in
      "*\(words.count)\r\n" + words.map { "$\($0.utf8.count)\r\n\($0)\r\n" }.joined()
    }.joined()
    let bytes = Array(text.utf8)
    guard write(descriptor, bytes, bytes.count) == bytes.count else { throw CocoaError(.fileWriteUnknown) }
  }

  /// Returns a simple answer, or the text of a bulk one.
  private func answer() throws -> String {
    let line = try line()
    if line.first == "-" { throw CocoaError(.featureUnsupported, userInfo: [NSLocalizedDescriptionKey: line]) }
    return line.first == "$" ? try self.line() : String(line.dropFirst())
  }

  private func line() throws -> String {
    while true {
      if let end = unread.firstIndex(of: 10) {
        defer { unread.removeSubrange(...end) }
        return String(decoding: unread[..<(end - 1)], as: UTF8.self)
      }
      var bytes = [UInt8](repeating: 0, count: 4_096)
      let count = read(descriptor, &bytes, bytes.count)
      guard count > 0 else { throw CocoaError(.fileReadUnknown) }
      unread += bytes.prefix(count)
    }
  }
}
