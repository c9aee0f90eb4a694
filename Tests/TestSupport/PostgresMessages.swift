/// A message of the PostgreSQL protocol, of either side.
package struct PostgresMessage: Equatable {
  /// The type, or `nil` for the first messages of a client, which have none.
  package let type: Character?
  /// All bytes, as they are sent.
  package let bytes: [UInt8]

  /// Creates a message from its type and all its bytes.
  package init(type: Character?, bytes: [UInt8]) {
    (self.type, self.bytes) = (type, bytes)
  }

  /// The content after the type and the length.
  package var payload: ArraySlice<UInt8> { bytes.dropFirst(type == nil ? 4 : 5) }

  /// The zero-terminated strings at the beginning of the content.
  ///
  /// - Parameter count: The maximum number of strings.
  package func strings(_ count: Int) -> [String] {
    payload.split(separator: 0, maxSplits: count, omittingEmptySubsequences: false)
      .prefix(count).map { String(decoding: $0, as: UTF8.self) }
  }

  /// A Boolean value that indicates whether a client asks for encryption by SSL or GSSAPI, which a server declines with
  /// the byte `N`.
  package var isEncryptionRequest: Bool {
    guard type == nil, bytes.count == 8 else { return false }
    let code = payload.reduce(0) { $0 << 8 | UInt32($1) }
    return code == 80_877_103 || code == 80_877_104
  }
}

/// Splits the bytes of one side of a connection into messages.
package struct PostgresMessageReader {
  private var isStarting: Bool
  private var bytes: [UInt8] = []
  private var position = 0

  /// Creates a reader for the bytes of a new connection.
  ///
  /// - Parameter isClient: A Boolean value that indicates whether the bytes are those of the client, whose first
  ///   messages have no type.
  package init(isClient: Bool) {
    isStarting = isClient
  }

  /// Adds received bytes.
  package mutating func append(_ received: [UInt8]) {
    bytes.removeFirst(position)
    position = 0
    bytes += received
  }

  /// Returns the next complete message, or `nil` if it has not been received.
  package mutating func next() -> PostgresMessage? {
    let head = isStarting ? 0 : 1
    guard bytes.count - position >= head + 4 else { return nil }
    let length = Int(number(at: position + head))
    guard bytes.count - position >= head + length else { return nil }
    defer { position += head + length }
    let type = isStarting ? nil : Character(Unicode.Scalar(bytes[position]))
    let message = PostgresMessage(type: type, bytes: Array(bytes[position..<position + head + length]))
    if isStarting { isStarting = message.isEncryptionRequest }
    return message
  }

  private func number(at index: Int) -> UInt32 {
    bytes[index..<index + 4].reduce(0) { $0 << 8 | UInt32($1) }
  }
}
