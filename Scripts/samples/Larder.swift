import Crypto
import LarderBatching
import LarderCache
import LarderCBOR
import LarderCrypto
import LarderExpiry
import LarderJSON
import LarderLMDB
import LarderObservation
import LarderPostgres
import LarderQueue
import LarderSQLite
import LarderStoreQueue
import LarderTesting
import Synchronization

struct Account: Codable, Sendable {
  var balance = 0
}

struct LeaseLost: Error {}
struct SignedOut: Error {}
struct NotText: Error {}
struct UnknownUser: Error {}
struct TooLarge: Error {}
struct AlreadyUsed: Error {}
struct NameTaken: Error {}
struct InvalidArgument: Error {}
struct DamagedRecord: Error {}

struct TooManyRequests: Error {
  var retryAfter: Duration = .zero
}

struct AuditLog: Sendable {
  func record(_ count: Int) {}
}

struct AuditedStore<Base: DataStore>: ForwardingStore {
  let base: Base
  var information: StoreInformation { base.information }

  func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: nonisolated(nonsending) () async throws -> Result
  ) async throws -> Result {
    try await body()
  }
}

struct UserV1: Codable, Sendable {
  var name = ""

  init(name: String) {}
  init(_ user: User) {}
}

struct UserV2: Codable, Sendable {
  var name = ""
  var email: String?
}

extension User {
  init(_ old: UserV1) { self.init() }
  init(_ old: UserV2) { self.init() }
  init(name: String, email: String?) { self.init() }
}

typealias MemoryOfBytes = AnyDataStore<[UInt8]>
typealias View<Value: Sendable> = TypedView<MemoryOfBytes, Value>

var store: AnyDataStore<User> { standIn() }
var users: CachedStore<AnyDataStore<User>> { standIn() }
var imported: [User] { standIn() }
var archive: AnyDataStore<User> { standIn() }
var accounts: AnyDataStore<Account> { standIn() }
var orders: AnyDataStore<Order> { standIn() }
var notes: ObservingStore<AnyDataStore<Note>> { standIn() }
var bytes: MemoryOfBytes { standIn() }
var sessions: ExpiringStore<AnyDataStore<Expiring<Session>>, Session> { standIn() }
var invitations: AnyDataStore<String> { standIn() }
var queue: QueueStore<Event> { standIn() }
var outbox: QueueStore<Event> { standIn() }
var reminder: Event { standIn() }
var deliveries: [QueueDelivery<Event>] { standIn() }
var delivery: QueueDelivery<Event> { standIn() }
var leases: HeldLeases { standIn() }
var key: StoreKey { standIn() }
var keys: [StoreKey] { standIn() }
var id: String { standIn() }
var token: StoreKey { standIn() }
var name: String { standIn() }
var url: String { standIn() }
var date: Date { standIn() }
var database: PostgresDatabase { standIn() }
var limiter: StoreLimiter { standIn() }
var message: String { standIn() }
var registry: StoreRegistry { standIn() }
var ring: KeyRing { standIn() }
var codec: JSONCodec<User> { standIn() }
var information: StoreInformation { standIn() }
var base: AnyDataStore<User> { standIn() }
var coder: ValueCoder<User> { standIn() }
var batch: ChangeBatch<User> { standIn() }
var cursorOfRequest: String { standIn() }
var refreshes: AsyncStream<Void>.Continuation { standIn() }

func fetch(_ key: StoreKey) async throws -> User? { standIn() }
func commit(_ batch: ChangeBatch<User>) async throws {}
func importUsers() async throws {}
func respond() async throws {}
func releaseFiles() {}

var damaged: AnyDataStore<User> { standIn() }
var rescued: AnyDataStore<User> { standIn() }

extension SalvageSequenceSamples {
  static var part: SalvagedPart<User> { standIn() }
  static var lost: [KeyRange] {
    get { standIn() }
    set {}
  }
}

extension ScanSequenceSamples {
  static var remaining: KeyRange {
    get { standIn() }
    set {}
  }
  static var last: StoreEntry<User> { standIn() }
}

extension DurableQueueSamples {
  static func sendAll(_ events: [Event]) async throws {}
}

extension ExpirableStoreSamples {
  static var id: StoreKey { standIn() }
  static func warn(_ user: User) {}
}

extension InvalidatableStoreSamples {
  static var folder: String { standIn() }
}

extension MaintainableStoreSamples {
  static var backup: AnyDataStore<User> { standIn() }
  static var entryCount: Int { standIn() }
  static var fileSize: Int64 { standIn() }
}

extension ObservableStoreSamples {
  static var users: ObservingStore<AnyDataStore<User>> { standIn() }
  static var reloads: AsyncStream<[StoreChange]>.Continuation { standIn() }
  static let unread = Atomic(false)
  static var change: StoreChange { standIn() }
  static var observation: StoreObservation { standIn() }
  static var index: Index { standIn() }

  struct Index {
    func remove(_ key: StoreKey) {}
    func removeAll(in range: KeyRange) {}
  }
}

extension InspectableQueueSamples {
  static var queue: StoreQueue<MemoryOfBytes, Event> { standIn() }
}

extension QueuePageSamples {
  static var queue: StoreQueue<MemoryOfBytes, Event> { standIn() }
}

extension PausableQueueSamples {
  static var queue: StoreQueue<MemoryOfBytes, Event> { standIn() }
  static func migrateDatabase() async throws {}
}

extension StoreObserversSamples {
  static let observers = StoreObservers()
}

extension JSONTextSamples {
  static var document: JSONText { standIn() }
  static var documents: AnyDataStore<JSONText> { standIn() }
}

extension ChangeBatchSamples {
  static var change: BatchChange<User> { standIn() }
  static var payer: Account { standIn() }
  static var payee: Account { standIn() }
}

extension StoreErrorSamples {
  static var remaining: KeyRange {
    get { standIn() }
    set {}
  }
  static func storedKey(for key: StoreKey) -> StoreKey { key }
  static func myKey(for key: StoreKey) -> StoreKey { key }
  static func showStorageIsFull() {}
}

extension UpdateDecisionSamples {
  static var store: AnyDataStore<String> { standIn() }
  static func edited(_ user: User?) throws -> User? { user }
}

extension UpdateSlotsSamples {
  static var slots: UpdateSlots<User> { standIn() }
}

extension DataStore_ConditionalSamples {
  static var nonces: AnyDataStore<Date> { standIn() }
  static var now: Date { standIn() }
  static var nonce: StoreKey { standIn() }
  static var flags: AnyDataStore<String> { standIn() }
  static var requests: ExpiringStore<AnyDataStore<Expiring<[UInt8]>>, [UInt8]> { standIn() }
  static var body: [UInt8] { standIn() }
  static var id: StoreKey { standIn() }
}

extension DataStore_CopyingSamples {
  static var savedCursor: PageCursor? { standIn() }
  static func save(_ cursor: PageCursor?) {}
  static var old: AnyDataStore<User> { standIn() }
  static var new: AnyDataStore<User> { standIn() }
}

extension DataStore_RewritingSamples {
  static var lastKey: StoreKey { standIn() }
  static func save(_ cursor: PageCursor?) {}
}

extension DataStore_UpdatingSamples {
  static var store: AnyDataStore<Int> { standIn() }
  static var seats: AnyDataStore<String> { standIn() }
}

extension StoreChangesSamples {
  static var store: ObservingStore<AnyDataStore<User>> { standIn() }
  static func reload(_ key: StoreKey) {}
  static func reloadAll(in range: KeyRange) {}
}

extension StoreStatesSamples {
  static var store: ObservingStore<AnyDataStore<Settings>> { standIn() }
  static func apply(_ settings: Settings) {}
}

extension Settings {
  static var standard: Settings { Settings() }
}

extension KeyComponentSamples {
  static var account: String { standIn() }
}

extension QueueDeliverySamples {
  struct Payment: Sendable {
    var amount = 0
  }
  static var payments: StoreQueue<MemoryOfBytes, Payment> { standIn() }
  static var totals: View<Int> { standIn() }
}

extension ConsumerWaitsSamples {
  static var waits: ConsumerWaits { standIn() }
  static var clock: any Clock<Duration> { standIn() }
  static func firstItem() async throws -> Event? { standIn() }
}

extension ReceiveLoopSamples {
  typealias Element = Event
  static var operations: RunningOperations { standIn() }
  static var decodingRecord: DecodingRecord { standIn() }
  static var retrying: RetryDelays { standIn() }
  static var leaseFirst: ReceiveLoop<Event>.Lease { standIn() }
  static var releaseLeases: ReceiveLoop<Event>.Release { standIn() }
  static var endLeases: ReceiveLoop<Event>.EndLeases { standIn() }
}

extension AnyDataStoreSamples {
  static var stores: [MemoryStore<User>] { standIn() }
}

extension KeyMappingStoreSamples {
  static var allSessions: AnyDataStore<Session> { standIn() }
  static var cache: CachedStore<AnyDataStore<User>> { standIn() }
}

extension LoadingStoreSamples {
  static var disk: AnyDataStore<[UInt8]> { standIn() }
}

extension BigEndianSamples {
  static var number: UInt64 { standIn() }
}

extension BulkWorkSamples {
  static var stored: [(StoreKey, [UInt8])] { standIn() }
}

extension CRC32CSamples {
  static var record: [UInt8] { standIn() }
  static var storedChecksum: UInt32 { standIn() }
}

extension CallerContextSamples {
  static var pending: [() async throws -> Void] {
    get { standIn() }
    set {}
  }
}

extension CodecRecordSamples {
  static var codecRecord: CodecRecord { standIn() }
  static var recordedName: String { standIn() }
  static func record(_ name: String) throws {}
}

extension ConditionalCommitSamples {
  struct Total {
    var bytes = 0
    var record: [UInt8] = []
    init() {}
    init?(_ record: [UInt8]) {}
    func adding(_ size: Int) -> Total { self }
  }
  enum Refusal: Sendable {
    case isFull
  }
  static var base: MemoryOfBytes { standIn() }
  static var customer: [UInt8] { standIn() }
  static var commit: ConditionalCommit<Refusal> {
    get { standIn() }
    set {}
  }
  static var size: Int { standIn() }
  static var limit: Int { standIn() }
}

extension EncodedChangesSamples {
  static func put(_ key: StoreKey, _ value: ArraySlice<UInt8>?) {}
  static func delete(_ range: KeyRange) {}
}

extension KeyDigestSamples {
  static var address: String { standIn() }
}

extension LockedSamples {
  static let entries = Locked<[StoreKey: User]>([:])
}

extension OrderOfUseSamples {
  struct Plan {
    var freed = 0
    func evict(_ candidate: StoreEntry<[UInt8]>) {}
  }
  static var now: Int64 { standIn() }
  static var places: KeyRange { standIn() }
  static var plan: Plan { standIn() }
  static var needed: Int { standIn() }
  static func writePlaces(of keys: [StoreKey]) async -> Bool { standIn() }
  static func readPage(_ range: KeyRange) async throws -> (candidates: [StoreEntry<[UInt8]>], rest: KeyRange?) {
    standIn()
  }
}

extension ValueCoderSamples {
  static var value: User { standIn() }
}

extension WriteGateSamples {
  static func rewriteEverything() async throws {}
}

enum MoveResult: Sendable {
  case moved, missingFolder, missingNote
}

extension DataStore_TransactionSamples {
  struct Note: Sendable {
    var folder: StoreKey
  }
  static var folder: StoreKey { standIn() }
  static var folders: View<String> { standIn() }
  static var notes: View<Note> { standIn() }
}

extension StoreTransactionSamples {
  static var accounts: View<Account> { standIn() }
}

extension TransactionParticipantSamples {
  static var archive: View<Note> { standIn() }
  static var inbox: View<Note> { standIn() }
  static var counts: View<Int> { standIn() }
  static var tx: StoreTransaction<MemoryOfBytes> { standIn() }
}

struct CheckedStore<Base: DataStore>: ForwardingStore {
  let base: Base
  var information: StoreInformation { base.information }
  init(_ base: Base, limit: Int?) { self.base = base }

  func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: nonisolated(nonsending) () async throws -> Result
  ) async throws -> Result {
    try await body()
  }
}

struct EventLog<Base: DataStore>: TransactionParticipant where Base.Value == [UInt8] {
  struct TransactionPlan {
    var events: [Event] = []
  }
  let base: Base
  var prefixes: [StoreKey] { standIn() }
  func makeTransactionPlan() -> TransactionPlan { TransactionPlan() }
  func finish(
    _ plan: TransactionPlan, in transaction: StoreTransaction<Base>
  ) async throws -> ConditionalCommit<any Error> { standIn() }
  func transactionDidCommit(_ plan: TransactionPlan) {}
}

extension CodecSamples {
  static var base: JSONCodec<User> { standIn() }
}

extension StoreInformationSamples {
  static var operations: RunningOperations { standIn() }
}

extension StoreKeySamples {
  static var userID: UUID { standIn() }
}

extension RateLimitSamples {
  static var reading: ClockReading { standIn() }
}

extension DurableQueue_ConveniencesSamples {
  static var appointment: Date { standIn() }
}

extension LostKeysSamples {
  static var remaining: KeyRange {
    get { standIn() }
    set {}
  }
  static var lost: KeyRange { standIn() }
}

extension WallClockSamples {
  struct Record {
    var beginning: Int64 = 0
    var duration: Int64 = 0
    var end: Int64 = 0
  }
  static var record: Record {
    get { standIn() }
    set {}
  }
  static var now: Int64 { standIn() }
}
