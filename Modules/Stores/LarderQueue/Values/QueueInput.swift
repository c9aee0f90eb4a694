public import Larder

/// An item that is to be enqueued with others.
public struct QueueInput<Element: Sendable>: Sendable {
  /// The item.
  public var value: Element

  /// The key under which it is kept, which makes enqueuing it again do nothing; `nil` for a generated one.
  public var id: StoreKey?

  /// How long it is kept back.
  public var delay: Duration

  /// Makes an input.
  ///
  /// - Parameters:
  ///   - value: The item.
  ///   - id: The key under which it is kept; `nil`, the default, for a generated one.
  ///   - delay: How long it is kept back; defaults to zero.
  public init(_ value: Element, id: StoreKey? = nil, delay: Duration = .zero) {
    self.value = value
    self.id = id
    self.delay = delay
  }
}
