import NIOCore

/// A channel handler that preserves the bytes above 0x7F of message heads.
///
/// RFC 9110, section 5.5, allows any such byte in a field value (obs-text). NIO's HTTP/1 handlers keep heads as Swift
/// strings and would replace bytes that are not UTF-8. This handler stands between them and the socket: it reads heads
/// as ISO 8859-1, in which each byte is a character, and writes them as that again. Bodies pass unchanged.
///
/// The handler that follows NIO's HTTP/1 handlers sets ``position`` and ``isWritingHead``. All of it runs on the event
/// loop of the channel.
final class HeadBytes: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = IOData
  typealias OutboundOut = IOData

  /// The place in a message.
  enum Position {
    case head
    /// A body with a number of bytes to come.
    case body(remaining: Int)
    /// A body that ends with an empty line, and may have others.
    case chunkedBody
  }

  /// The place of the next byte that is received.
  var position = Position.head

  /// A Boolean value that indicates whether the next buffer to send is a head.
  var isWritingHead = false

  /// A Boolean value that indicates whether the last byte but carriage returns was a line feed, so another one makes an
  /// empty line.
  private var isAtLineStart = false

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var buffer = Self.unwrapInboundIn(data)
    // NIO's decoder is called within `fireChannelRead`, which is how the position changes. A buffer may hold the end of
    // one message and the beginning of the next.
    while buffer.readableBytes > 0 {
      let part: ByteBuffer?
      switch position {
      case .head: part = buffer.readSlice(length: lengthToEmptyLine(in: buffer)).map(Self.decoded)
      case .chunkedBody: part = buffer.readSlice(length: lengthToEmptyLine(in: buffer))
      case .body(let remaining):
        let length = min(max(remaining, 1), buffer.readableBytes)
        position = .body(remaining: remaining - length)
        part = buffer.readSlice(length: length)
      }
      guard let part else { return }
      context.fireChannelRead(Self.wrapInboundOut(part))
    }
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard isWritingHead, case .byteBuffer(let head) = Self.unwrapOutboundIn(data) else {
      return context.write(data, promise: promise)
    }
    isWritingHead = false
    context.write(Self.wrapOutboundOut(.byteBuffer(Self.encoded(head))), promise: promise)
  }

  /// Returns the number of bytes to the end of the first empty line, or of the buffer.
  private func lengthToEmptyLine(in buffer: ByteBuffer) -> Int {
    for (offset, byte) in buffer.readableBytesView.enumerated() {
      switch byte {
      case UInt8(ascii: "\r"): continue
      case UInt8(ascii: "\n") where isAtLineStart:
        isAtLineStart = false
        return offset + 1
      default: isAtLineStart = byte == UInt8(ascii: "\n")
      }
    }
    return buffer.readableBytes
  }

  /// Returns a head, or a part of one, in UTF-8.
  private static func decoded(_ head: ByteBuffer) -> ByteBuffer {
    guard head.readableBytesView.contains(where: { $0 > 0x7F }) else { return head }
    var decoded = ByteBuffer()
    for byte in head.readableBytesView { decoded.writeString(String(Unicode.Scalar(byte))) }
    return decoded
  }

  /// Returns a head with a byte for each character that has one in ISO 8859-1.
  private static func encoded(_ head: ByteBuffer) -> ByteBuffer {
    guard head.readableBytesView.contains(where: { $0 > 0x7F }) else { return head }
    var encoded = ByteBuffer()
    for scalar in String(buffer: head).unicodeScalars {
      if let byte = UInt8(exactly: scalar.value) {
        encoded.writeInteger(byte)
      } else {
        // A field that was not received but made here.
        encoded.writeString(String(scalar))
      }
    }
    return encoded
  }
}
