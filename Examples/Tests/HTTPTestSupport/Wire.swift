import Foundation
package import NIOCore
import NIOPosix

/// A message of HTTP/1.1 as it was received: each byte is one character of the texts.
package struct Message: Sendable {
  /// The number of the request's connection, from 0.
  package var connection = 0

  /// The start line and the fields.
  package var head: String
  package var body = ""

  /// A Boolean value that indicates whether the body was received to its end.
  package var isComplete = true

  /// The interim responses before this response.
  package var interim: [Message] = []

  package var startLine: String { head.components(separatedBy: "\r\n")[0] }
  package var method: String { startLine.components(separatedBy: " ")[0] }
  package var target: String { startLine.components(separatedBy: " ")[1] }
  package var status: Int { Int(startLine.components(separatedBy: " ")[1]) ?? 0 }

  /// Returns the values of a field, in order.
  package subscript(name: String) -> [String] {
    head.components(separatedBy: "\r\n").dropFirst().compactMap { line in
      guard let colon = line.firstIndex(of: ":"), line[..<colon].lowercased() == name.lowercased() else { return nil }
      return String(line[line.index(after: colon)...].drop { $0 == " " })
    }
  }
}

/// The two directions of a connection whose bytes a test reads and writes itself.
package struct Wire {
  private var parts: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
  private let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
  private var received = ""

  package init(
    _ inbound: NIOAsyncChannelInboundStream<ByteBuffer>, _ outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
  ) {
    parts = inbound.makeAsyncIterator()
    self.outbound = outbound
  }

  /// Connects to a port of this computer, and closes the connection when a closure returns.
  package static func connect<Result: Sendable>(
    to port: Int, _ body: (inout Wire) async throws -> Result
  ) async throws -> Result {
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .connect(host: "127.0.0.1", port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
        }
      }
    return try await channel.executeThenClose { inbound, outbound in
      var wire = Wire(inbound, outbound)
      return try await body(&wire)
    }
  }

  /// Sends text, each of whose characters is one byte.
  package func send(_ text: String) async throws {
    try await outbound.write(ByteBuffer(bytes: text.unicodeScalars.map { UInt8($0.value) }))
  }

  /// Returns the next request; `nil` at the end of the connection.
  package mutating func readRequest(readsBody: Bool = true) async throws -> Message? {
    guard let head = try await readHead() else { return nil }
    var request = Message(head: head)
    if readsBody, request["Transfer-Encoding"] == ["chunked"] || !request["Content-Length"].isEmpty {
      try await readBody(of: &request)
    }
    return request
  }

  /// Returns the next final response, with its body as far as it came.
  ///
  /// - Parameter hasBody: A Boolean value that indicates whether a body follows the head; not for a response to HEAD.
  package mutating func readResponse(hasBody: Bool = true) async throws -> Message? {
    var interim: [Message] = []
    while let head = try await readHead() {
      var response = Message(head: head, interim: interim)
      guard response.status >= 200 else {
        interim.append(response)
        continue
      }
      if hasBody, response.status != 204, response.status != 304 { try await readBody(of: &response) }
      return response
    }
    return nil
  }

  /// Returns the next bytes, or `nil` at the end of the connection.
  package mutating func readSome() async throws -> String? {
    if received.isEmpty, try await !receive() { return nil }
    defer { received = "" }
    return received
  }

  private mutating func readHead() async throws -> String? {
    while true {
      if let end = received.firstRange(of: "\r\n\r\n") {
        defer { received.removeSubrange(..<end.upperBound) }
        return String(received[..<end.lowerBound])
      }
      guard try await receive() else { return nil }
    }
  }

  private mutating func readBody(of message: inout Message) async throws {
    do {
      if message["Transfer-Encoding"] == ["chunked"] {
        while true {
          let size = Int(try await readLine(), radix: 16) ?? 0
          message.body += try await read(size)
          _ = try await readLine()
          if size == 0 { return }
        }
      } else if let length = message["Content-Length"].first {
        message.body = try await read(Int(length) ?? 0)
      } else {
        while try await receive() {}
        message.body = received
        received = ""
      }
    } catch is EndOfConnection {
      message.body += received
      message.isComplete = false
    }
  }

  private struct EndOfConnection: Error {}

  private mutating func readLine() async throws -> String {
    while true {
      if let end = received.firstRange(of: "\r\n") {
        defer { received.removeSubrange(..<end.upperBound) }
        return String(received[..<end.lowerBound])
      }
      guard try await receive() else { throw EndOfConnection() }
    }
  }

  private mutating func read(_ count: Int) async throws -> String {
    while received.unicodeScalars.count < count {
      guard try await receive() else { throw EndOfConnection() }
    }
    let end = received.unicodeScalars.index(received.startIndex, offsetBy: count)
    defer { received.removeSubrange(..<end) }
    return String(received[..<end])
  }

  private mutating func receive() async throws -> Bool {
    let buffer: ByteBuffer?
    do {
      buffer = try await parts.next(isolation: #isolation)
    } catch is IOError {
      // The other side reset the connection.
      return false
    }
    guard let buffer else { return false }
    received.unicodeScalars.append(contentsOf: buffer.readableBytesView.map { Unicode.Scalar($0) })
    return true
  }
}
