#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// A TCP socket on this machine, closed by whoever made it.
struct Socket: Sendable {
  private let descriptor: Int32

  private init(descriptor: Int32) {
    self.descriptor = descriptor
  }

  /// A socket that waits for connections, on a port that was free.
  ///
  /// - Returns: The socket, and its port.
  static func listening() throws -> (socket: Socket, port: UInt16) {
    #if canImport(Glibc)
    let kind = Int32(SOCK_STREAM.rawValue)
    #else
    let kind = SOCK_STREAM
    #endif
    let descriptor = socket(AF_INET, kind, 0)
    guard descriptor >= 0 else { throw SystemError.current() }
    let listener = Socket(descriptor: descriptor)
    do {
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      try withUnsafeMutablePointer(to: &address) { pointer in
        try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
          guard bind(descriptor, pointer, length) == 0, listen(descriptor, 64) == 0,
            getsockname(descriptor, pointer, &length) == 0
          else { throw SystemError.current() }
        }
      }
      return (listener, UInt16(bigEndian: address.sin_port))
    } catch {
      listener.close()
      throw error
    }
  }

  /// Waits for a connection; `nil` where the socket was shut down.
  func accepted() -> Socket? {
    while true {
      let connection = accept(descriptor, nil, nil)
      guard connection < 0 else {
        #if canImport(Darwin)
        var isOn: Int32 = 1
        setsockopt(connection, SOL_SOCKET, SO_NOSIGPIPE, &isOn, socklen_t(MemoryLayout<Int32>.size))
        #endif
        return Socket(descriptor: connection)
      }
      guard errno == EINTR || errno == ECONNABORTED else { return nil }
    }
  }

  /// Waits for bytes; none where the other side has ended the connection.
  func read() throws -> [UInt8] {
    while true {
      var count = 0
      let bytes = [UInt8](unsafeUninitializedCapacity: 65536) { buffer, length in
        count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
        length = max(count, 0)
      }
      if count >= 0 { return bytes }
      guard errno == EINTR else { throw SystemError.current() }
    }
  }

  /// Writes bytes, all of them.
  func write(_ bytes: some Collection<UInt8>) throws {
    #if canImport(Darwin)
    let flags: Int32 = 0
    #else
    let flags = Int32(MSG_NOSIGNAL)
    #endif
    var rest = Array(bytes)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, flags) }
      if count >= 0 {
        rest = rest.dropFirst(count)
      } else if errno != EINTR {
        throw SystemError.current()
      }
    }
  }

  /// Wakes whoever waits on the socket.
  func shutDown() {
    _ = shutdown(descriptor, Int32(SHUT_RDWR))
  }

  func close() {
    #if canImport(Darwin)
    _ = Darwin.close(descriptor)
    #elseif canImport(Musl)
    _ = Musl.close(descriptor)
    #else
    _ = Glibc.close(descriptor)
    #endif
  }
}
