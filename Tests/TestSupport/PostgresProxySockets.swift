import Foundation

#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

/// The sockets that a ``PostgresProxy`` begins with, and operations on sockets.
///
/// All sockets are non-blocking.
struct ProxySockets: Sendable {
  /// The path of the server's socket.
  let server: String
  /// The socket that clients connect to.
  let listener: Int32
  /// A pipe that wakes the thread.
  let alarm: Int32

  private let folder: String

  /// Creates a folder with a socket in it.
  init(folder: String, server: String) throws {
    (self.folder, self.server) = (folder, server)
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    guard mkfifo(folder + "/alarm", 0o600) == 0 else { throw PostgresFailure("mkfifo fails: error \(errno)") }
    alarm = open(folder + "/alarm", O_RDWR | O_NONBLOCK | O_CLOEXEC)
    listener = ProxySockets.create()
    let path = folder + "/.s.PGSQL.5432"
    guard ProxySockets.withAddress(path, { bind(listener, $0, $1) }) == 0, listen(listener, 1_000) == 0 else {
      throw PostgresFailure("the proxy cannot listen on \(path): error \(errno)")
    }
  }

  /// Accepts a connection, or returns `nil` if no client is waiting.
  func accept() -> Int32? {
    #if canImport(Darwin)
    let client = Darwin.accept(listener, nil, nil)
    #else
    let client = Glibc.accept(listener, nil, nil)
    #endif
    guard client >= 0 else { return nil }
    ProxySockets.prepare(client)
    return client
  }

  /// Closes the sockets and removes the folder.
  func close() {
    ProxySockets.close(listener)
    ProxySockets.close(alarm)
    do {
      try FileManager.default.removeItem(atPath: folder)
    } catch {
      print("could not remove \(folder): \(error)")
    }
  }

  /// Connects to a socket, or returns `nil` if no server is listening.
  static func connect(_ path: String) -> Int32? {
    let descriptor = create()
    #if canImport(Darwin)
    let result = withAddress(path) { Darwin.connect(descriptor, $0, $1) }
    #else
    let result = withAddress(path) { Glibc.connect(descriptor, $0, $1) }
    #endif
    guard result == 0 else {
      close(descriptor)
      return nil
    }
    return descriptor
  }

  /// Sends bytes and returns their number, or -1 with `errno` set.
  static func send(_ bytes: ArraySlice<UInt8>, to descriptor: Int32) -> Int {
    bytes.withUnsafeBytes { bytes in
      #if canImport(Darwin)
      Darwin.send(descriptor, bytes.baseAddress, bytes.count, 0)
      #else
      Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
      #endif
    }
  }

  /// Closes a connection, even if a process that was started at the moment of its creation has inherited it.
  static func close(_ descriptor: Int32) {
    shutdown(descriptor, Int32(SHUT_RDWR))
    #if canImport(Darwin)
    _ = Darwin.close(descriptor)
    #else
    _ = Glibc.close(descriptor)
    #endif
  }

  private static func create() -> Int32 {
    #if canImport(Darwin)
    let descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
    #else
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    #endif
    prepare(descriptor)
    return descriptor
  }

  private static func prepare(_ descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    #if canImport(Darwin)
    var isOn: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &isOn, socklen_t(MemoryLayout<Int32>.size))
    #endif
  }

  private static func withAddress<Result>(
    _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) -> Result {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
    return withUnsafePointer(to: address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
  }
}
