import Larder

@testable import LarderQueue

/// Everything that a ledger holds, to compare it with another.
struct LedgerView: Equatable {
  var items: [ItemState]
  var dead: [ItemState]
  var nextSequence: UInt64
  /// Until when keys are remembered.
  var remembered: [StoreKey: Int64]

  init(_ ledger: QueueLedger) {
    items = ledger.items(in: .all, limit: .max, order: .ascending).compactMap { ledger.state(of: $0.sequence) }
      .sorted { $0.item.sequence < $1.item.sequence }
    dead = ledger.deadLetters(.max)
    nextSequence = ledger.nextSequence
    remembered = ledger.remembered.entries.mapValues(\.deadline)
  }

  /// What is left when the time goes on.
  func advanced(to now: Int64) -> LedgerView {
    var view = self
    for index in view.items.indices where view.items[index].timer.map({ $0.deadline <= now }) ?? false {
      view.items[index].timer = nil
      view.items[index].item.phase = .waiting
    }
    view.remembered = view.remembered.filter { $0.value > now }
    return view
  }

  /// What it does not have in common with a model, whose values are those of `values`; `nil` where they say the same.
  func difference(from model: QueueModel, values: [StoreKey: Int]) -> String? {
    let found = items.map { state in
      QueueModel.Item(
        sequence: state.item.sequence, key: state.item.key, value: values[state.item.key] ?? -1,
        attempts: Int(state.item.attempts), until: state.timer?.deadline,
        lease: state.item.phase == .leased ? 0 : nil, hasCallersKey: state.item.hasCallersKey)
    }
    let expected = model.items.map { item in
      var item = item
      if item.lease != nil { item.lease = 0 }
      item.made = nil
      item.diedAtFirst = nil
      return item
    }
    guard found == expected else { return "items: \(found), in the model \(expected)" }
    let (deadFound, deadExpected) = (dead.map(\.item.sequence), model.dead.map(\.sequence))
    guard deadFound == deadExpected else { return "dead: \(deadFound), in the model \(deadExpected)" }
    guard remembered == model.remembered else { return "remembered: \(remembered), in the model \(model.remembered)" }
    return nil
  }
}
