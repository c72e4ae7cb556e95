"""Stopwords by language: function and question words, which say little about what a query looks for.

The lists hold articles, pronouns, prepositions, conjunctions, auxiliary verbs, and the words that introduce a question.
Words that often name a subject (``find``, German ``Arm``) are absent. The lists weight words of queries; pages are
indexed with all their words.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from nutch2py.support.bounded_cache import bounded_cache

_CHINESE_FUNCTION_WORDS = """
的 地 得 了 着 过 是 在 和 与 及 或 而 也 都 就 把 被 让 对 从 到 吗 呢 吧 啊 呀 嘛 这 那 之 其 该 一个 一种
这个 那个 什么 怎么 怎样 如何 为什么 哪些 哪个 哪里 请问 有没有 是否
"""
_WORDS = {
    "en": """
a about above after again against all also am among an and another any are aren't around as at be because been
before being below between both but by can cannot can't could couldn't did didn't do does doesn't doing don't done
down during each either else every few for from further get gets given got had hadn't has hasn't have haven't having
he her here hers herself him himself his how i if in into is isn't it it's its itself just many may me might more
most much must my myself near neither no nor not of off on once one only onto or other our ours ourselves out over
own per please rather same shall she should shouldn't since so some such than that that's the their theirs them
themselves then there there's these they this those though through to too toward towards under until up upon us very
via was wasn't we were weren't what what's when where where's whether which while who who's whom whose why will with
within without won't would wouldn't yet you your yours yourself yourselves
""",
    "de": """
aber alle allem allen aller alles als also am an ander andere anderem anderen anderer anderes auch auf aus bei beim
bin bis bist bitte da dabei dadurch dafür daher damit danach dann daran darauf daraus darin darüber darum das dass
dasselbe davon davor dazu dein deine deinem deinen deiner dem demselben den denen denn denselben der deren derer
derselbe derselben des dessen desselben dich die dies diese dieselbe dieselben diesem diesen dieser dieses dir doch
dort du durch ein eine einem einen einer eines einig einige einigem einigen einiger einiges einmal er es etwa etwas
euch euer eure eurem euren eurer für gab gegen gibt gewesen hab habe haben hast hat hatte hatten hattest hier hin
hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in indem ins ist ja jede jedem jeden jeder jedes jene jenem
jenen jener jenes kann kannst kein keine keinem keinen keiner können könnte könnten machen macht man manche manchem
manchen mancher mehr mein meine meinem meinen meiner mich mir mit muss muß müssen nach nachdem neben nicht nichts
noch nun nur ob oder ohne schon sehr sei sein seine seinem seinen seiner seines seit selbst sich sie sind so solche
solchem solchen solcher soll sollen sollte sondern sonst über um und uns unser unsere unserem unseren unserer unter
viel viele vielen vom von vor wann war waren warst warum was wegen weil welch welche welchem welchen welcher welches
wem wen wenn wer werde werden weshalb wessen wie wieder wieviel wieso will wir wird wirst wo wobei wodurch wofür
woher wohin womit woran worauf woraus worden worin worüber worum wovon wozu wurde wurden während zu zum zur zwar
zwischen
""",
    "fr": """
a à afin ai ainsi alors après as au aucun aucune aujourd'hui auquel aura aussi autour autre autres aux auxquelles
auxquels avaient avait avant avec avez avoir avons ayant ça car ce ceci cela celle celles celui cependant ces cet
cette ceux chaque chez ci combien comme comment dans de dedans dehors depuis des desquelles desquels dès doit
doivent donc dont du duquel durant elle elles en encore entre es est est-ce et étaient était étant été être eu eux
fait faire faut furent fut ici il ils je jusqu jusque la laquelle le lequel les lesquelles lesquels leur leurs lors
lorsque lui ma mais me même mêmes mes mien moi moins mon ne ni non nos notre nous on ont ou où par parce parmi pas
pendant peu peut peuvent plus pour pourquoi pourrait près puis puisque qu quand que quel quelle quelles quelque
quelques quels qui quoi sa sans sauf se selon sera serait ses si sien soi soit son sont sous suis sur ta tandis te
tels tes toi ton tous tout toute toutes très trop tu un une vers voici voilà vos votre vous y
""",
    "es": """
a acerca adonde adónde al algo algún alguna algunas alguno algunos allí ambos ante antes aquel aquella aquellas
aquello aquellos aquí así aun aunque bajo bien cada casi como cómo con contra cual cuál cuales cuáles cualquier
cuando cuándo cuanta cuánta cuantas cuántas cuanto cuánto cuantos cuántos cuya cuyas cuyo cuyos da de debe deben del
desde después donde dónde dos durante e el él ella ellas ellos en entonces entre era eran es esa esas ese eso esos
esta está estaba están estar estas este esto estos fue fueron ha había habían haber hace hacer hacia han hasta hay
la las le les lo los más me mediante mi mí mientras mis mucha muchas mucho muchos muy nada ni ningún ninguna ninguno
no nos nosotros nuestra nuestras nuestro nuestros o os otra otras otro otros para pero poco por porque pues puede
pueden qué que quien quién quienes quiénes se según ser será si sí sido siempre sin sino sobre solo sólo son su sus
también tan tanto te tenía tiene tienen tener ti todas todo todos tras tu tú tus u un una unas uno unos usted
ustedes vosotros y ya yo
""",
    "it": """
a ad affinché agli ai al alcun alcuna alcune alcuni alcuno alla alle allo allora altra altre altri altro anche
ancora avere aveva avevano avuto che chi ci ciò cioè co coi col come con contro cosa così cui da dagli dai dal dalla
dalle dallo de degli dei del della delle dello dentro di dopo dove dov dovrebbe due dunque durante e è ebbe ed era
erano essa esse essere essi esso fa fare fino fra fu furono gli ha hai hanno ho i il in infatti io la là le lei li
lo loro lui ma me mediante meno mentre mi mia mie miei mio molta molte molti molto ne né negli nei nel nella nelle
nello nessun nessuna nessuno no noi non nostra nostre nostri nostro o od ogni oltre oppure ora perché per però più
po poi presso prima proprio può possono qual quale quali qualche quando quant quanta quante quanti quanto quasi
quegli quei quel quella quelle quelli quello questa queste questi questo qui quindi se sé sei sempre senza si sia sì
sono sopra sotto sta stata stati stato su sua sue sugli sui sul sulla sulle sullo suo suoi tale tali tanto te ti tra
tu tua tue tuo tuoi tutta tutte tutti tutto un una uno va verso vi voi vostra vostro
""",
    "pt": """
a à acerca ainda além algo alguém algum alguma algumas alguns ambos ante antes ao aos após aquela àquela aquelas
aquele àquele aqueles aquilo aqui as às assim até através cada com como contra cujo cuja cujos cujas da das de dela
delas dele deles depois desde dessa dessas desse desses desta destas deste destes deve devem disso disto do dos
durante e é ela elas ele eles em embora enquanto entre era eram essa essas esse esses esta está estão estas estava
estavam este estes estar eu faz fazer foi foram for há isso isto já la lhe lhes lo logo mais mas me mediante mesma
mesmas mesmo mesmos meu meus minha minhas muita muitas muito muitos na não nas nela nelas nele neles nem nenhum
nenhuma nesse nessa nesta neste no nos nós nossa nossas nosso nossos num numa o onde aonde ora os ou outra outras
outro outros para pela pelas pelo pelos perante pode podem pois por porém porque porquê porquanto pouco pra qual
quais qualquer quando quanta quantas quanto quantos quase que quê quem são se sem sempre sendo ser será seria seu
seus si sido sob sobre sua suas tal também tampouco tanto te tem têm teu teus teve ter tinha tinham toda todas todo
todos tu tua tuas tudo um uma umas uns você vocês vos
""",
    "nl": """
aan af al alle alleen alles als altijd andere anders ben beide bent bij binnen boven buiten dan dat de den der deze
die dit doch doen door dus een eens elk elke en enige enkele er erg ervan geen geweest haar had hadden heb hebben
hebt heeft heel hem hen het hier hij hoe hoeveel hoewel hun iemand iets ik in indien is ja je jij jou jouw jullie
kan kon konden kunnen kunt langs maar maken me meer men met mij mijn moet moeten na naar naast net niet niets nog
nooit nu of om omdat onder ons onze ook op over per reeds rond samen sinds sommige te tegen ten ter terwijl toch
toen tot totdat tussen u uit uw vaak van vanaf veel via voor vooral waar waaraan waarbij waardoor waarin waarmee
waarom waarop waarover waarvan waarvoor wanneer want ware waren was wat we weer wel welk welke werd werden wie wiens
wij wil worden wordt zal ze zelf zeer zich zij zijn zo zoals zonder zou zouden zowel
""",
    "sv": """
alla allt alltså andra annan annat att av bara bland blev bli blir blivit båda de dem den denna deras dess dessa det
detta dig din dina ditt du där därför då eftersom efter ej eller en enligt er era ert ett finns fick från få får för
före förra gjorde gör göra genom ha hade hans har hela hela hennes henne hit hos hon honom hur hurdan huruvida här i
icke ifrån igen in inför ingen inget inga innan inom inte ja jag kan ju kunde kunna man med mellan men mer mera mest
mig min mina mitt mot mycket måste ni nu när nära någon något några nästan och också om oss på samma sedan sig sin
sina sitt själv ska skall skulle som så sådan sådana sådant till trots tills under upp ur ut utan vad var vara
varför varit varifrån varje vars vart varthän vem vems vi vid vilka vilkas vilken vilket vill visst vår våra vårt är
åt över
""",
    "da": """
ad af al alle alt altså anden andet andre at bag begge blandt blev blive bliver da de deg dem den denne der deraf
deres derfor derpå det dets dette dig din dine disse dit dog du efter ej eller en end enhver er et ethvert for fordi
fra få får før gennem gør gøre ham han hans har havde have hende hendes her hos hun hvad hvem hver hvilke hvilken
hvilket hvis hvor hvordan hvorfor hvorfra hvorhen hvorhenne hvori hvornår i igen ikke imellem imod ind inden ingen
intet ja jeg jer jeres jo kan kom kunne man mange med meget mellem men mens mere mest mig min mindre mine mit mod må
måske ned nej noget nogen nogle nu når nær og også om omkring op os over på samme sammen selv sig sin sine sit skal
skulle som så sådan sådant thi til under undtagen uden ud var ved vi vil ville vor vore vort være været
""",
    "no": """
alle alt altså andre annen annet at av bak bare begge ble blei bli blir blitt blant både båe da de deg dei deim
deira dem den denne der dere deres derfor det dette di din disse ditt du dykk dykkar då eg ein eit eitt eller elles
en enn er et ett etter for fordi foran fra få får før først gjennom gjør gjøre ha hadde han hans har hennar henne
hennes her hjå ho hos hoe honom hoss hossen hun hva hvem hver hvilke hvilken hvilket hvis hvor hvordan hvorfor
hvorfra hvorhen i igjen ikke ikkje ingen ingi inkje inn innen inni ja jeg kan kom korleis korso kunne kva kvar
kvarhelst kven kvi kvifor man mange me med medan meg meget mellom men mens mer mest mi min mine mitt mot mykje må
ned no noe noen noka noko nokon nokor nokre nå når nær og også om opp oss over på samme sammen seg selv si sia sidan
siden sin sine sitt sjøl skal skulle slik so som somme somt så sånn til um under upp ut uten var vart varte ved vere
verte vi vil ville vore vors vort vår være vært å
""",
    "fi": """
ei eivät emme en enemmän eniten ennen entä että ette et eräs he heidän heidät heihin heillä heiltä heistä heitä hän
hänelle hänellä häneltä hänen hänessä hänet hänestä hänet häntä ilman itse ja johon johonka joiden joihin joilla
joille joilta joissa joista joita joka jokainen joko jolla jolle jolloin jolta jona jonka jos jossa josta jota jotka
jotta ja jo jokin jonkin jopa juuri kaikki kanssa kautta ketkä keneen kenelle kenellä keneltä kenen kenessä kenestä
ketä kohti koska koko kuin kuinka kuka kumpi kun kunnes kuten kyllä lisäksi luona me meidän meidät meihin meille
meillä meiltä meissä meistä meitä miksi mikä mihin mikäli mille millainen millä millainen millaista milloin miltä
minkä minkälainen minne minua minulla minulle minulta minun minut minuun minussa minusta minä missä mistä miten mitä
mitkä moni monta montako mukaan mutta muu muut myös mikä ne niiden niihin niille niillä niiltä niin niissä niistä
niitä noin nuo nyt näiden näille näillä näissä näistä näitä nämä ole olemme olen olet olette oli olimme olin olisi
olivat olla olleet ollut on onko ovat paitsi pitkin pitäisi puolesta saa se sekä sen siihen siinä siitä sillä sille
siltä sinua sinulla sinun sinut sinä sitä suhteen tai te teidän teille teillä teissä teitä tuo tuon tämä tämän tässä
tästä tähän tällä tätä vaan vai vaikka varten vastaan vielä voi voivat vuoksi yli ympäri kesken
""",
    "hu": """
a ahogy ahol aki akik akkor alatt által általában amely amelyek amelyekben amelyet amelynek ami amit amíg ami amikor
át az azért azok azon azt azzal azután be bár csak de e ebben eddig egy egyes egyéb egyik ehhez ekkor el ellen első
én ennek és ez ezek ezért ezt ezzel fel felé ha hanem hány hányadik hogy hogyan hol honnan hová hova igen ill
illetve ilyen ilyenkor is itt jó ki kell kellett keresztül kicsoda kik kinek kit ki kívül közé között lehet lehetett
legyen lenne lesz lett maga magát majd még meg mellett melyik melyek mely mert mi miatt mi mikor milyen mind minden
mindig mint mintha mit mivel miért mennyi meddig most nagyon nak ne néha nek nem nincs ők ő olyan ön össze ott pedig
persze rá s saját sem semmi sok sokkal szerint szinte számára te tehát teljes több tovább túl ugyanis új úgy után
utána vagy vagyis valaki valami valamint való van vannak vele vissza viszont volt voltak volna
""",
    "ro": """
a abia acea aceasta această aceea acei aceia acel acela acele acelea acest acesta aceste acestea acești aceștia
acolo acum ai aici al ale alta altă alte alți altul am ar are aș așa asta astfel asupra atât atunci au avea avem
avut azi ca că când care cărei căror cărui cât câtă câte câți ce cea cei cel cele celor cine cu cui cum dacă dar de
deci deja deși despre din dintre doar după e ea ei el ele eram este eu fără fi fie fiecare fiind fost i îi îl îmi în
înainte încât încă între îți îl la le li lor lui mai mea mei mele meu mi mult multe mulți ne nici niște noastră
noastre nostru nou noi nu o oare ori oricare orice pe pentru peste poate pot prea prin printr sa să sale sau săi său
se și sînt spre sub sunt suntem sus ta tale tău te toată toate tot toți totuși tu un una unde undeva unei unele unii
unor unui unul va vă vi vor vostru voi vreo
""",
    "ru": """
а без более больше будем будет будете будешь буду будут будь бы был была были было быть в вам вами вас ваш ваша ваше
ваши ведь весь во вот впрочем все всегда всего всей всем всеми всех всю вся всё вы где говорит да даже два для до
другая другие другой другого его ее ей ему если есть еще ещё же за зачем здесь и из или им имеет ими их иногда й к
каждый как какая какие какими каких каким какова каково какое какого какой каком какому какую когда кого ком кому
конечно которая которого которое которой которую которые который которым которых кроме кто куда ли либо лишь лучше
между меня мне мной может можно мои моей мой моя моё мы на над надо наш наша наше наши не него нее ней нельзя нем
нему несколько нет неё ни нибудь никогда ним ними них ничего но ну о об один однако одна одно он она они оно от
откуда очень перед по под подо пока после потом потому почему почти при про против раз разве с сам сама сами само
своего своей своём свои свой своих свою свое своё своя себе себя сейчас сколько со совсем снова среди так также
такая такие такое такой там твой твоя те тебе тебя тем теперь тех то тобой тогда того тоже той только том тому тот
тою ту тут ты у уж уже хотя чего чей чем чему через что чтоб чтобы чуть чьё чья чьи эта эти этим этими этих это
этого этой этом этому этот эту я является являются
""",
    "uk": """
а або аби але б багато без би більш більше буде будуть був була були було бути в вам вами вас ваш ваша ваше ваші вже
ви від він вона вони воно все всі всіх весь вся де для до дуже є же за зараз з зі із й його йому її їй їм їх його
коли кого кому котра котрий куди крім кожен ким який яка яке які якого якій якому яку яких якими як яким лише між
мене мені ми мій моя може можна на над нам нами нас наш не нема немає ні ніж них них ним но ну о об один одна одне
однак ось от перед під після по поки про при проти саме сам свій свої своя себе собі скільки та так також такий там
те тебе тим ти тільки то тобі тобто того той тому тут у хіба хоч хто цей це ця ці цього цьому чи чим чого чому що
щоб щодо я якщо звідки навіщо через
""",
    "pl": """
a aby ach albo ale ależ ani aż bardzo bez bo bowiem by był była było były być będzie będą będę co cóż czego czemu
czy czyj czyja czyje czym czyli dla dlaczego dlatego do dokąd dość dużo dwa gdy gdyby gdyż gdzie go i ich ile ilu im
inna inne inny innych iż ja ją jak jaka jaką jakaś jakby jaki jakich jakie jakiego jakiej jakim jakimi jako jakoś je
jeden jedna jednak jedno jego jej jemu jest jestem jeszcze jeśli jeżeli już każda każde każdy kiedy kim kogo komu
kto która którą które którego której któremu który których którym którymi którzy lecz lub ma mają mam mi mimo między
mną mnie mogą moi moim moja moje może można mój mu musi my na nad nam nami nas nasi nasz nasza nasze natomiast nawet
nią nic nich nie niech niej niemu nigdy nim nimi niż no o od około on ona one oni ono oraz oto pan po pod podczas
pomimo ponad ponieważ poza przed przede przez przy raz razie sam sama się skąd są swoich swoim swoja swoje swój ta
tak taka taki takich takie także tam te tego tej ten też to tobą tobie tu twój twoja ty tych tylko tym tymi u w wam
wami was wasz według wiele więc właśnie wszyscy wszystkich wszystkie wszystkim wszystko wtedy wy z za zawsze zaś ze
że żeby
""",
    "cs": """
a aby ačkoli ale ani ano asi až bez bude budeme budou být byl byla byli bylo byly co což cože či čí čím další dle do
dokud dnes dva ho i já jak jaká jaké jakého jaký jakou jakých jakým jako je jeden jedna jedno jeho jej její jejich
jemu jen jenž jestli jestliže ještě ji jí jich jiné již jsem jsi jsme jsou jste k kam každý kde kdo kdy když ke
kolik kolem komu koho kromě která které kterého kterém kteří který kterou kterých kterým ku kudy má mají máme mezi
mě mi mít mne mnou moc mohou moje mu můj může my na nad nade nám námi nás náš naše ne nebo nebyl neboť nechť něco
nějaký někde někdo nejsou není než ni nic nich ním no o od ode odkud on ona oni ono ony pak po pod podle pokud pouze
potom pro proč proto protože před přede přes přesto při s se sama si sice sobě své svůj svou svých svým ta tak také
takový takže tam tato tě té tedy ten tento této ti tím to toho tohle tom tomu toto tu tuto tvůj ty tyto u už v vám
vámi vás váš ve velmi více však všechen všechno všichni vy z za zda zde ze že
""",
    "sk": """
a aby aj ak ako aká aké aký akého alebo ale ani áno asi až bez bol bola boli bolo bude budú by byť čo či čí cez do
ešte ho hoci i ich im iba ja je jeho jej ju k kam každý kde kedy keď kto koho komu ku ktorá ktoré ktorého ktorej
ktorí ktorý ktorých ktorým koľko lebo len ma má majú medzi mi mňa môj môže my na nad nám nás náš nie nich než o od
odkiaľ on ona oni ono po pod podľa pokiaľ pre prečo pred pretože pri s sa si sme som ste sú svoj ta tak také takže
tam táto te tej ten tento tie tieto to toho tom tomu toto tu tá ty u už v vám vás váš veľmi viac však všetko všetky
vy z za zo že
""",
    "tr": """
acaba ama ancak artık aslında ayrıca az bana bazı belki ben benden beni benim bile bir biri birkaç birçok biz bize
bizim bu buna bunda bundan bunlar bunları bunu bunun burada çok çünkü da daha de defa değil diğer diye dolayı
dolayısıyla en fakat gibi göre hakkında hala halen hangi hangisi hani hatta hem henüz hep hepsi her herhangi hiç
için içinde ile ilgili ise işte itibaren kaç kadar karşın kendi kendini ki kim kime kimi kimin kimse mı mi mu mü
nasıl ne neden nedenle nedir nerede nereden nereye nesi niçin niye o olan olarak oldu olduğu olduğunu olmak olması
olsa olur olursa ona onlar onları onların onu onun orada oysa öyle önce pek rağmen sadece sanki sen sene siz sizin
sonra şey şu şunlar tarafından tüm üzere var vardı ve veya ya yani yapılan yerine yine yok yoksa zaten zira kaçıncı
""",
    "el": """
αλλά αλλα αν ανά αντί από αποτελεί αποτελούν απο αρκετά αυτά αυτές αυτή αυτό αυτοί αυτός αυτού αυτούς αυτών αυτην
αφού βέβαια για γιατί γιατι δεν δε δηλαδή δια διότι εάν εαν εγώ εδώ είμαι είμαστε είναι ειναι είσαι είστε εκεί
εκείνα εκείνες εκείνη εκείνο εκείνοι εκείνος εμείς εμάς ένα ένας ενός ενώ επί επίσης εσείς εσύ ή ήδη ήταν ηταν η θα
ίδια ίδιο ίδιος ίσως κάθε και καθώς κάποια κάποιο κάποιος κατά κάτι κι κάτω λόγω μα μας με μέσα μετά μεταξύ μέχρι μη
μην μήπως μια μία μιας μόνο μου μπορεί μπορούν να ναι ο οι όλα όλες όλη όλο όλοι όμως όπου όποια όποιο όποιος όπως
όσα όσο όσοι όταν ότι οτι ούτε όχι παρά πάντα περί περίπου πια πιο ποια ποιά ποιας ποιες ποιο ποιό ποιοι ποιον ποιος
ποιός ποιού ποιων πολλά πολύ πόσα πόσες πόση πόσο πόσοι πόσος πότε ποτε που πού πρέπει πριν προς πρώτα πως πώς σαν
σας σε σου στα στη στην στις στο στον στους στων τα τη την της τι τί τις το τον τόσο τότε του τους των υπάρχει
υπάρχουν υπό υπέρ χωρίς ως ώς ώστε όλων
""",
    "ar": """
من إلى الى عن على في فى حتى منذ مع مذ هل ما ماذا متى أين كيف كم لماذا لم لن لا لو لولا ليس ليست أي أية أيّ أيها من
هو هي هم هن هما أنا نحن أنت أنتم أنتما أنتن هذا هذه هذان هاتان هؤلاء ذلك تلك ذاك أولئك هنا هناك هنالك الذي التي
الذين اللذان اللتان اللاتي اللواتي ثم أو أم بل لكن لكنّ إن أن إنّ أنّ كان كانت كانوا يكون تكون كنت كن أكون نكون سوف
قد لقد كل كلا كلتا بعض جميع غير سوى بين تحت فوق أمام امام خلف وراء قبل بعد عند عندما لدى لدي حول خلال ضد دون بدون
نحو حيث حين حينما بينما كما كأن إذا إذ اذا إذن اذن لأن لان لذلك لذا لكي كي أيضا أيضاً ايضا فقط جدا منها منه منهم
فيها فيه فيهم به بها بهم له لها لهم لنا لك لي عليه عليها عليهم إليه إليها عنه عنها وهو وهي وهم ومن وفي وما ولا ولم
وكان وكانت وقد وأن وإن وعلى فإن فقد مثل ذات ذو ذي عدة عدد نعم ربما أكثر يا بما مما عما فيما لما أما إما يمكن تم يتم
مَن و ف ب ل ك التى الذى اي كيفية
""",
    "fa": """
و در به از که این آن را با است برای تا بر یک هم نیز اما یا بود شد شده می ها های او ما من تو شما آنها آنان ایشان خود
خویش هر همه هیچ چه چی چرا چگونه چطور چقدر چند چندم کجا کی کدام کیست چیست آیا اگر ولی پس پیش بین روی زیر بالای کنار
نزد سوی درباره مورد بدون جز غیر مانند مثل همچون همین همان چنین چنان دیگر باید شاید توان نه بله هست هستند هستیم هستم
نیست بودند باشد باشند کرد کرده کند کنند کنید دارد دارند داشت داشته شود شوند خواهد خواهند بی چون زیرا بلکه لذا وقتی
هنگام هنگامی حال سپس باز برخی بعضی بسیار خیلی کم بیش بیشتر ترین تر اینکه آنکه آنچه اینها ای ام ات اش اند یعنی توسط
طی ضمن علیه بلی
""",
    "he": """
של את על אל עם אם או גם כי לא כן זה זו זאת אלה אלו הוא היא הם הן אני אתה אתם אתן אנחנו אנו היה הייתה היתה היו יהיה
תהיה יהיו להיות יש אין מה מהו מהי מהם מהן מי מיהו מתי איפה היכן איך כיצד כמה למה מדוע לאן מאין מנין איזה איזו אילו
האם אשר כל כול כמו רק עוד מאוד אך אבל אלא בין לפני אחרי לאחר תחת מעל ליד אצל לפי בלי ללא כדי עד מן ב ל מ ה ו ש כ לו
לה להם להן לי לך לנו לכם אותו אותה אותם אותן אותי אותך אותנו שלו שלה שלהם שלי שלך שלנו בו בה בהם ממנו ממנה מהם אליו
אליה עליו עליה עליהם פי כבר כאשר לכן אז שם פה כאן הזה הזו הזאת האלה אחד אחת אחר אחרת אחרים יותר פחות כך ככה משום
מפני בגלל בשביל אולי ניתן יכול יכולה יכולים צריך אפשר
""",
    "hi": """
का के की को में से पर है हैं था थे थी हो होता होती होते होना हुआ हुई हुए और या एवं तथा कि जो जिस जिसे जिसका जिसके
जिसकी जिन जिनका जिनके जिनकी यह ये वह वे इस इसे इसका इसके इसकी इसमें इन इनका इनके इनकी उस उसे उसका उसके उसकी उसमें उन
उनका उनके उनकी मैं हम तुम आप मेरा मेरे मेरी हमारा हमारे हमारी आपका आपके आपकी अपना अपने अपनी ने तो ही भी न नहीं मत
क्या कौन किस किसे किसका किसके किसकी किसने किन कब कहाँ कहां कैसे कैसा कैसी क्यों कितना कितने कितनी कौनसा कौनसी कौनसे
एक कुछ कोई सब सभी हर कर करना करने करता करते करती किया किए की गया गई गए जा जाता जाती जाते जाना रहा रहे रही द्वारा लिए
लेकिन परंतु मगर अगर यदि जब तब तक साथ बाद पहले ऊपर नीचे बीच बारे अंदर बाहर वाला वाले वाली बहुत अधिक ज्यादा कम यहाँ
वहाँ अब फिर इसलिए क्योंकि जैसे वैसे ऐसे ऐसा सकता सकते सकती चाहिए
""",
    "ta": """
ஒரு என்று மற்றும் இந்த இது என்ற கொண்டு என்பது பல ஆகும் அல்லது அவர் நான் உள்ள அந்த இவர் என முதல் என்ன இருந்து சில என்
போன்ற வேண்டும் வந்து இதன் அது அவன் தான் என்னும் மேலும் பின்னர் கொண்ட இருக்கும் தனது உள்ளது போது என்றும் அதன் தன்
பிறகு அவர்கள் வரை அவள் நீ ஆகிய இருந்தது உள்ளன வந்த இருந்த மிகவும் இங்கு மீது ஓர் இவை இந்தக் பற்றி வரும் வேறு இரு
இதில் போல் இப்போது அவரது மட்டும் இந்தப் எனும் மேல் பின் சேர்ந்த ஆகியோர் எனக்கு இன்னும் அந்தப் அன்று ஒரே மிக அங்கு
பல்வேறு விட்டு பெரும் அதை பற்றிய உன் அதிக அந்தக் பேர் இதனால் அவை அதே ஏன் முறை யார் என்பதை எல்லாம் மட்டுமே இங்கே
அங்கே இடம் இடத்தில் அதில் நாம் அதற்கு எனவே பிற சிறு மற்ற விட எந்த எனவும் எனப்படும் எனினும் அடுத்த இதனை இதை கொள்ள
இந்தத் இதற்கு அதனால் தவிர எங்கே எப்போது எப்படி எவ்வளவு எத்தனை எது
""",
    "zh": f"""
{_CHINESE_FUNCTION_WORDS}
这些 那些 这样 那样 怎么样 为何 为什 哪 哪儿 哪种 哪位 哪一 哪年 谁 何 何时 何处 何种 几 几个 多少 多久 多大 请
能否 可否 是不是 能不能 可不可以 有 没有 没 不 不是 我 你 您 他 她 它 我们 你们 他们 她们 它们 自己 其中 其他
以及 以 于 由 为 向 给 跟 同 比 并 并且 但 但是 可是 然而 因为 因此 所以 如果 虽然 只 只有 还 还有 又 再 很
非常 最 更 太 可以 能 能够 会 要 应该 关于 对于 由于 根据 按照 通过 之后 之前 之间 以后 以前 时候 当 等 等等 些
个 里 上 中 下 所 者
""",
    "ja": """
の に は を た が で て と し れ さ ある いる も する から な こと として い や れる など なっ ない この ため その
あっ よう また もの という あり まで られ なる へ か だ これ によって により おり より による ず なり られる
において ば なかっ なく しかし について せ だっ その後 できる それ う ので なお のみ でき き つ における および いう
さらに でも ら たり その他 に関する たち ます ん なら に対して 特に せる 及び これら とき では にて ほか ながら うち
そして とともに ただし かつて それぞれ または お ほど ものの に対する ほとんど と共に といった です とも ところ ここ
あれ どれ どの どんな どこ どう どうして どのよう どのように どのくらい なぜ なに なん 何 誰 だれ いつ いくつ いくら
どちら どなた 何故 何時 何処 何人 何年 私 僕 彼 彼女 あなた でした ました ません ください ですか ますか でしょう
""",
    "ko": """
이 그 저 것 수 등 및 또는 또한 그리고 그러나 하지만 그래서 따라서 즉 때문에 때문 위해 위한 대한 대해 대하여 관한
관해 의해 의한 통해 통한 따라 따른 에서 에게 으로 부터 까지 보다 처럼 같은 있는 있다 있었다 없는 없다 하는 하다 한다
했다 된 되는 되다 된다 되었다 이다 입니다 인가 인가요 인지 무엇 무엇인가 무엇인가요 무슨 어떤 어떻게 어디 어디서
어디에 어디에서 언제 누구 누가 누구인가 왜 몇 얼마 얼마나 어느 나 너 우리 저희 당신 그는 그녀 그들 이것 그것 저것
여기 거기 모든 각 더 가장 매우 아주 좀 잘 안 못 만 도 은 는 가 을 를 의 에 와 과 로
""",
    "th": """
ที่ และ ของ ใน เป็น การ มี ได้ ว่า ไม่ ให้ จะ จาก กับ นี้ ก็ คือ หรือ แต่ โดย ไป มา แล้ว ซึ่ง เพื่อ นั้น อยู่ ด้วย
ถึง ต้อง ตาม ต่อ ความ กว่า เมื่อ ยัง อย่าง อีก บน นำ ทำ กัน เขา เธอ เรา ฉัน ผม คุณ มัน พวก ทั้ง ทุก บาง หลาย มาก
น้อย เพราะ ถ้า หาก จึง ดังนั้น อะไร ใคร ไหน ที่ไหน เมื่อไร เมื่อไหร่ อย่างไร ยังไง ทำไม เท่าไร เท่าไหร่ กี่ ใด ไหม
หรือไม่ บ้าง แห่ง ณ ระหว่าง ก่อน หลัง ภายใน
""",
    "vi": """
và của là có được cho các những một trong với không người này đó khi từ đã để ra vào như về ở đến bị cũng tại theo
mà thì hay hoặc nhưng nếu vì nên do bởi bằng trên dưới sau trước giữa ngoài qua lại còn nữa rất hơn nhất chỉ đang sẽ
sự việc cái con chiếc tôi bạn anh chị ông bà nó chúng họ ta mình gì nào ai đâu sao bao nhiêu mấy thế cùng mọi mỗi
từng đều phải hãy rồi chưa vẫn đây kia ấy à ạ nhé
""",
    "id": """
yang dan di ke dari untuk pada dengan ini itu adalah dalam tidak akan oleh sebagai juga atau ada karena sudah telah
dapat bisa lebih saat oleh seperti agar tetapi tapi namun jika kalau maka sehingga bahwa antara para serta hingga
sampai tanpa secara setelah sebelum ketika sementara selama bagi tentang terhadap atas bawah apa apakah siapa
siapakah kapan kapankah dimana di mana mana manakah kemana bagaimana bagaimanakah mengapa kenapa berapa berapakah
saya aku kamu anda dia ia kami kita mereka nya lah kah pun sangat hanya masih lagi belum bukan jangan harus yaitu
yakni semua setiap beberapa banyak suatu sebuah seorang hal tersebut dahulu sedang pernah menjadi merupakan
""",
    "ca": """
a al als alguna algunes alguns això aquell aquella aquelles aquells aquest aquesta aquestes aquests així amb abans
cada com contra de del dels des després dins dos durant e el ella elles ells els em en encara entre era eren es és
esta està estan fa fins ha han havia hem hi ho i jo la les li llur m'ha més mentre meu molt molta moltes molts ni no
nosaltres o on per perquè però pot pots qual quals quan quant quanta quantes quants que què qui sa se sense ser seu
seus si sobre són sota també tan tot tota totes tots tu un una unes uns va van vosaltres
""",
    "bg": """
а ако ала бе без беше би бил била били било близо бъде бяха в вас ваш ваша вероятно вече ви вие все всеки всички
всичко въпреки върху г где дали до докато дори е един една едно за зад защо защото и из или им има имат й каза как
каква какви какво какъв като кога когато кого която които кой който колко към къде където ли м между ме може мой
моля му н на над най накъде насам не него нея ни ние никой нищо но някои някой няма о около освен от отново ощe още
по под пред преди през при с са сам само се сега си след сме според сред срещу съм със също т така такива такъв там
твой те тези ти то това тогава този той толкова точно трябва тук тъй тя тях у че чий чия чрез я
""",
}  # fmt: skip

STOPWORD_LANGUAGES = frozenset(_WORDS)
"""Codes of the languages that have a list."""
CHINESE_FUNCTION_WORDS = frozenset(_CHINESE_FUNCTION_WORDS.split())
"""Words of Chinese sentences and questions that are no terms of a query, in folded form."""


@bounded_cache(maxsize=256, max_key_length=32)
def get_stopwords(language: str) -> frozenset[str]:
    """Return the function and question words of a language, in lower case; an empty set for an unknown language.

    Words with accents are also present without them, as users type them.

    Args:
        language: A code such as ``de`` or ``pt-BR``.

    """
    code = language.strip().lower().replace("_", "-").partition("-")[0]
    words = _WORDS.get({"nb": "no", "nn": "no"}.get(code, code), "").split()
    return frozenset({*words, *map(_strip_accents, words), *(word.replace("'", "") for word in words)})


def is_stopword(word: str, languages: Iterable[str]) -> bool:
    """Return whether a word is a stopword of one of the languages or of a script that names its language.

    The scripts of Chinese, Japanese, Korean, Thai, Arabic, Hebrew, Greek and Hindi need no language.

    >>> is_stopword("Welche", ["de"]), is_stopword("what’s", ["en"]), is_stopword("什么", [])
    (True, True, True)
    >>> is_stopword("die", ["en"]), is_stopword("Versicherung", ["de"])
    (False, False)
    """
    plain = word.lower().replace("’", "'")
    codes = {*languages, *_SCRIPT_LANGUAGES} if plain > "\u0370" else {*languages}
    return any(plain in get_stopwords(code) for code in codes)


_SCRIPT_LANGUAGES = ("ar", "el", "fa", "he", "hi", "ja", "ko", "ta", "th", "zh")


def _strip_accents(word: str) -> str:
    if not word.isalpha() or word > "\u0500":  # Arabic, Thai and Indic marks are letters of their words
        return word
    return "".join(each for each in unicodedata.normalize("NFD", word) if not "\u0300" <= each <= "\u036f")
