/// Turns values into bytes and back.
///
/// A store keeps the ``name`` of its codec and refuses to be opened with another, so the name must change with the format.
public protocol Codec<Value>: Sendable {
  /// What is turned into bytes.
  associatedtype Value: Sendable

  /// The name of the format, like `json`. Codecs that write the same format for the same values share a name.
  var name: String { get }

  /// What the bytes are.
  var format: CodecFormat { get }

  /// Appends the bytes of a value.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - bytes: Gets the bytes behind what it holds already. After an error its content is of no use.
  /// - Throws: What the value or the format throws where the value cannot be encoded. A store reports it as the
  ///   underlying error of ``StoreError/Code/encodingFailed``.
  func encode(_ value: Value, into bytes: inout [UInt8]) throws

  /// Makes a value of all the given bytes.
  ///
  /// - Parameter bytes: What ``encode(_:into:)`` appended; possibly memory of a store's own, good only during the call.
  /// - Throws: What the value or the format throws where these bytes are no value. A store reports it as the underlying
  ///   error of ``StoreError/Code/corrupted``.
  func decode(_ bytes: RawSpan) throws -> Value
}
