//! Texts of the test pages.

pub(crate) const ENGLISH: &str = "The committee met on 14 March 2019 and agreed to extend the programme for another two years. \
    Members asked for a clear account of the costs, which had grown by 7.5 percent since the previous review. \
    A written answer was promised before the end of the month. The chair thanked everyone who had taken part in the \
    visits to the northern sites, where the weather had made the work difficult but the people had been generous \
    with their time. Nobody doubted that the bridge would open in spring; whether the road behind it could carry the \
    traffic was another question, and one that the engineers preferred not to answer yet.";

pub(crate) const HARBOUR: &str = "Before the new quay was built, ships of any size had to anchor in the bay and wait for \
    the tide. Cargo came ashore in flat boats that forty men could unload within a day, provided the wind stayed low. \
    The ledger of 1871 names 212 vessels, among them \"Providence\" and \"Little Hope\", and gives what each had on \
    board: salt, timber, dried fish, iron (mostly nails), wine and glass. Duties were paid on the spot; a clerk, Mr. \
    Oakley, complained that half of the coins were foreign. Why he kept a list of them is unknown. It is the only \
    record we have of trade with the islands, and it ends on the night of the great fire.";

pub(crate) const GARDEN: &str = "Water early in the morning, never at noon. Young plants need about 3 litres a week, older \
    ones twice as much; in July check the soil by hand, as its surface dries first. Remove dead leaves at once. Snails \
    dislike copper, ash and coffee, but rain makes each of these useless within hours. Seeds kept from the year before \
    should be sown more thickly: only 60% to 80% of them will come up. Beans, peas and clover feed the ground that \
    cabbage empties, so let them follow one another. Whoever keeps bees should leave some thyme to flower.";

pub(crate) const GERMAN: &str = "Größere Änderungen müssen schriftlich beantragt werden. Für die Prüfung der Anträge gilt \
    eine Frist von sechs Wochen; über Verlängerungen entscheidet der Ausschuss. Die Straße bleibt während der \
    Bauarbeiten für Fußgänger geöffnet. Übermäßiger Lärm ist zu vermeiden, außer es drängt die Zeit: dann dürfen Züge \
    auch nachts fahren. Ölwechsel, Bremsprüfung und Schlüsselübergabe erfolgen künftig am Schalter 7.";

pub(crate) const FRENCH: &str = "L'été dernier, nous avons reçu près de trois mille élèves à la bibliothèque. Où était donc \
    la forêt que ma sœur décrivait ? Le garçon a répondu qu'il fallait être patient, même à Noël. Les fenêtres du \
    château, brisées après l'orage, furent remplacées dès le printemps; ça coûta cher, mais les hôtes étaient déjà là.";

pub(crate) const SPANISH: &str = "El año pasado la compañía abrió una oficina más pequeña en Málaga. ¿Quién podría haber \
    previsto que el avión llegaría con tanta antelación? Los niños comían piñones mientras el público aplaudía \
    según la tradición. También había lingüistas, músicos y un médico jubilado.";

pub(crate) const POLISH: &str = "W zeszłym tygodniu źródło wyschło, więc mieszkańcy wsi zaczęli nosić wodę ze studni. Żaden \
    urzędnik nie umiał wyjaśnić, dlaczego ciśnienie spadło o połowę. Późną nocą usłyszeliśmy głośny łoskot nad rzeką.";

pub(crate) const CZECH: &str = "Včera večer přišel můj bratr s novým kolem. Říkal, že žádná jiná značka není tak lehká, a \
    ještě téhož dne odjel směrem k řece. Příští týden má přijet i jeho žena s dětmi.";

pub(crate) const TURKISH: &str = "Geçen yıl şehrin güney kapısında küçük bir müze açıldı. Çocuklar için ayrılan bölümde eski \
    oyuncaklar, ağaçtan yapılmış gemiler ve ışıklı haritalar sergileniyor. İzmir yolu kışın kapalıdır.";

pub(crate) const RUSSIAN: &str = "Прошлой осенью жители посёлка собрали деньги на новый мост. Старый, построенный ещё до войны, \
    дважды закрывали на ремонт, и каждый раз дорога до города становилась длиннее на целый час. Теперь работы \
    закончены, и первый автобус пройдёт в понедельник утром.";

pub(crate) const GREEK: &str = "Το περασμένο φθινόπωρο οι κάτοικοι του χωριού μάζεψαν χρήματα για μια καινούργια γέφυρα. Η \
    παλιά είχε κλείσει δύο φορές για επισκευή και κάθε φορά ο δρόμος μέχρι την πόλη γινόταν μεγαλύτερος.";

/// Without shaping and in logical order; the strokes are those of the script nevertheless.
pub(crate) const ARABIC: &str = "في الخريف الماضي جمع سكان القرية المال من أجل جسر جديد. أغلق الجسر القديم مرتين للإصلاح \
    وفي كل مرة كان الطريق إلى المدينة يصبح أطول بساعة كاملة. انتهى العمل الآن وسوف تمر الحافلة الأولى صباح الإثنين";

pub(crate) const HEBREW: &str = "בסתיו שעבר אספו תושבי הכפר כסף לגשר חדש. הגשר הישן נסגר פעמיים לצורך תיקון ובכל פעם הדרך אל \
    העיר התארכה בשעה שלמה. העבודות הסתיימו והאוטובוס הראשון יעבור ביום שני בבוקר.";

pub(crate) const GEORGIAN: &str = "გასულ შემოდგომაზე სოფლის მცხოვრებლებმა ახალი ხიდისთვის ფული შეაგროვეს. ძველი ხიდი ორჯერ \
    დაიკეტა შესაკეთებლად და ყოველ ჯერზე გზა ქალაქამდე ერთი საათით გრძელდებოდა.";

pub(crate) const ARMENIAN: &str = "Անցած աշնանը գյուղի բնակիչները գումար հավաքեցին նոր կամրջի համար։ Հինը երկու անգամ փակվել էր \
    վերանորոգման, և ամեն անգամ ճանապարհը դեպի քաղաք երկարում էր։";
