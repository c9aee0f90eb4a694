/// The values of an update, one slot for each key, in the order of the keys.
///
/// A slot holds the value of its key, or `nil` if the key is missing. Assign to change it, or assign `nil` to remove the
/// key. A slot that was not assigned is left as it is: it is not encoded, not written, not renewed and not reported.
///
/// ```swift
/// try await accounts.update(["alice", "bob"]) { slots in
///   slots[0]?.balance -= 10
///   slots[1]?.balance += 10
/// }
/// ```
///
/// Changing a part of a value in place assigns its slot, also if the value is the same afterward. A part of a missing
/// value cannot change, so its slot stays unassigned.
public struct UpdateSlots<Value: Sendable>: Sendable {
  @usableFromInline
  struct Slot: Sendable {
    @usableFromInline var value: Value?
    @usableFromInline var isAssigned: Bool

    @inlinable
    init(_ value: Value?, isAssigned: Bool = false) {
      self.value = value
      self.isAssigned = isAssigned
    }
  }

  @usableFromInline var slots: [Slot]

  /// Creates slots that were not assigned, as a store or a decorator does before it runs a body.
  ///
  /// A body assigns the slots that it gets. It must not replace them as a whole, because new slots count as unassigned.
  ///
  /// - Parameter values: The value for each key, or `nil` if the key is missing.
  @inlinable
  public init(stored values: some Sequence<Value?>) {
    slots = values.map { Slot($0) }
  }

  /// Returns whether a slot was assigned.
  ///
  /// ```swift
  /// let isWritten = keys.indices.filter { slots.isAssigned($0) }  // only these are encoded and written
  /// ```
  ///
  /// - Parameter index: The position of the key in the keys of the update.
  @inlinable
  public func isAssigned(_ index: Int) -> Bool { slots[index].isAssigned }

  /// The positions of the assigned slots, in ascending order.
  @inlinable public var assignedIndices: [Int] { slots.indices.filter { slots[$0].isAssigned } }

  /// Assigns all slots.
  ///
  /// - Parameter values: The new value for each key, or `nil` to remove the key. There must be one for each slot.
  @inlinable
  public mutating func assign(_ values: some Collection<Value?>) {
    precondition(values.count == count, "there must be a value for each slot")
    for (index, value) in zip(indices, values) { self[index] = value }
  }

  /// Returns the changes that the assigned slots make.
  ///
  /// - Parameter keys: The keys of the update.
  /// - Returns: A set for each assigned value, and a removal for each assigned `nil`.
  @inlinable
  public func changes(of keys: [StoreKey]) -> [BatchChange<Value>] {
    assignedIndices.map { index in slots[index].value.map { .set(keys[index], $0) } ?? .remove(keys[index]) }
  }
}

extension UpdateSlots: RandomAccessCollection, MutableCollection {
  /// The position of the first slot: 0.
  @inlinable public var startIndex: Int { 0 }

  /// The number of slots.
  @inlinable public var endIndex: Int { slots.count }

  /// The value of a slot, or `nil` for a missing key.
  ///
  /// - Parameter index: The position of the key in the keys of the update.
  @inlinable
  public subscript(index: Int) -> Value? {
    get { slots[index].value }
    set { slots[index] = Slot(newValue, isAssigned: true) }
    // Beside `set`, which would copy a value before a part of it changes.
    _modify {
      let wasMissing = slots[index].value == nil
      yield &slots[index].value
      // A part of a missing value cannot change, as in `slots[0]?.count += 1`.
      if !wasMissing || slots[index].value != nil { slots[index].isAssigned = true }
    }
  }
}
